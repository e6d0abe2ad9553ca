#include "tandem/nn/mobilenet_v3.h"

#include <fmt/ranges.h>

#include <array>
#include <span>
#include <string>

#include "tandem/nn/inverted_residual.h"
#include "tandem/ops/concat.h"
#include "tandem/tensor/copy.h"

namespace tandem {
namespace {

using namespace detail;

// One block; its input has the channels of the block before.
struct BlockRow {
  std::int64_t kernel, expanded, out;
  bool squeezes;
  FusedActivation activation;
  std::int64_t stride;
};

constexpr auto re = FusedActivation::relu, hs = FusedActivation::hardswish;

constexpr std::array<BlockRow, 15> large_blocks{{{3, 16, 16, false, re, 1},
                                                 {3, 64, 24, false, re, 2},
                                                 {3, 72, 24, false, re, 1},
                                                 {5, 72, 40, true, re, 2},
                                                 {5, 120, 40, true, re, 1},
                                                 {5, 120, 40, true, re, 1},
                                                 {3, 240, 80, false, hs, 2},
                                                 {3, 200, 80, false, hs, 1},
                                                 {3, 184, 80, false, hs, 1},
                                                 {3, 184, 80, false, hs, 1},
                                                 {3, 480, 112, true, hs, 1},
                                                 {3, 672, 112, true, hs, 1},
                                                 {5, 672, 160, true, hs, 2},
                                                 {5, 960, 160, true, hs, 1},
                                                 {5, 960, 160, true, hs, 1}}};
constexpr std::array<BlockRow, 11> small_blocks{{{3, 16, 16, true, re, 2},
                                                 {3, 72, 24, false, re, 2},
                                                 {3, 88, 24, false, re, 1},
                                                 {5, 96, 40, true, hs, 2},
                                                 {5, 240, 40, true, hs, 1},
                                                 {5, 240, 40, true, hs, 1},
                                                 {5, 120, 48, true, hs, 1},
                                                 {5, 144, 48, true, hs, 1},
                                                 {5, 288, 96, true, hs, 2},
                                                 {5, 576, 96, true, hs, 1},
                                                 {5, 576, 96, true, hs, 1}}};

constexpr std::int64_t stem_channels = 16;
constexpr ConvNormOptions norm_options{.momentum = 0.01, .epsilon = 1e-3};

std::span<const BlockRow> blocks_of(bool large) {
  return large ? std::span<const BlockRow>(large_blocks) : std::span<const BlockRow>(small_blocks);
}

constexpr std::int64_t hidden_units(bool large) {
  return large ? 1280 : 1024;
}

// The multiple of 8 that is nearest, but not below 9/10 of the value.
constexpr std::int64_t make_divisible(std::int64_t value) {
  const std::int64_t rounded = std::max<std::int64_t>(8, (value + 4) / 8 * 8);
  return 10 * rounded < 9 * value ? rounded + 8 : rounded;
}

// torchvision's initial values of linear layers.
void initialize(const Linear& layer, const RandomOptions& random) {
  copy_into(layer.weight().detach(), normal(layer.weight().shape(), 0, 0.01, random));
}

}  // namespace

MobileNetV3::MobileNetV3(const MobileNetV3Options& options)
    : BackboneModel(hidden_units(options.large), options.classes, options.seed, options.dropout),
      options_(options),
      features_(std::make_unique<Container>()),
      classifier_(std::make_unique<Container>()),
      hidden_(6 * blocks_of(options.large).back().out, hidden_units(options.large),
              {.random = {.seed = options.seed, .stream = 1002}}) {
  StreamCounter streams(options.seed);
  stem_ = std::make_unique<ConvNormActivation>(options.channels, stem_channels,
                                               conv_options(3, 2, streams.next()), norm_options, hs);
  features_->add_child("0", *stem_);
  std::int64_t in = stem_channels;
  std::uint32_t number = 1;
  for (const BlockRow& row : blocks_of(options.large)) {
    blocks_.push_back(std::make_unique<InvertedResidual>(
        InvertedResidualOptions{.in = in,
                                .expanded = row.expanded,
                                .out = row.out,
                                .kernel = row.kernel,
                                .stride = row.stride,
                                .squeezed = row.squeezes ? make_divisible(row.expanded / 4) : 0,
                                .activation = row.activation,
                                .squeeze_activation = Activation::relu,
                                .gate = Activation::hardsigmoid,
                                .norm = norm_options},
        options.seed, number, streams));
    features_->add_child(std::to_string(number++), *blocks_.back());
    in = row.out;
  }
  last_ =
      std::make_unique<ConvNormActivation>(in, 6 * in, conv_options(1, 1, streams.next()), norm_options, hs);
  features_->add_child(std::to_string(number), *last_);
  add_child("features", *features_);
  initialize(hidden_, streams.next());
  initialize(head_layer(), streams.next());
  classifier_->add_child("0", hidden_);
  if (head_dropout()) classifier_->add_child("2", *head_dropout());
  classifier_->add_child("3", head_layer());
  add_child("classifier", *classifier_);
}

MobileNetV3::~MobileNetV3() = default;

Tensor MobileNetV3::compute(const Tensor& x, std::vector<Tensor>* means) {
  check(x.rank() == 4 && x.size(3) == options_.channels,
        "[mobilenet_v3] expected images (n, height, width, {}), got {}", options_.channels, x.shape());
  Tensor y = stem_->forward(x);
  const std::span<const BlockRow> rows = blocks_of(options_.large);
  std::int64_t stride = 2;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (rows[i].stride == 2) {
      if (means && stride >= 8) means->push_back(image_mean(y));
      stride *= 2;
    }
    y = blocks_[i]->forward(y);
  }
  return activate(Activation::hardswish, hidden_.forward(image_mean(last_->forward(y))));
}

Tensor MobileNetV3::features(const Tensor& x) {
  return compute(x, nullptr);
}

Tensor MobileNetV3::stage_features(const Tensor& x) {
  std::vector<Tensor> means;
  means.push_back(compute(x, &means));
  return concat(means, 1);
}

std::vector<std::vector<std::string>> MobileNetV3::stages() const {
  std::vector<std::vector<std::string>> all{{"features.0"}};
  int number = 1;
  for (const BlockRow& row : blocks_of(options_.large)) {
    if (row.stride == 2) all.emplace_back();
    all.back().push_back(fmt::format("features.{}", number++));
  }
  return all;
}

void MobileNetV3::freeze_statistics() {
  stem_->freeze_statistics();
  for (const auto& block : blocks_) block->freeze_statistics();
  last_->freeze_statistics();
}

}  // namespace tandem
