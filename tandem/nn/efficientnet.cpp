#include "tandem/nn/efficientnet.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "tandem/nn/inverted_residual.h"
#include "tandem/ops/concat.h"
#include "tandem/tensor/copy.h"

namespace tandem {
namespace {

using namespace detail;

// The blocks of a stage; the first has the stride and the channels of the stage before.
struct StageRow {
  std::int64_t expansion, kernel, stride, out, blocks;
};

constexpr std::array<StageRow, 7> stage_rows{{{1, 3, 1, 16, 1},
                                              {6, 3, 2, 24, 2},
                                              {6, 5, 2, 40, 2},
                                              {6, 3, 2, 80, 3},
                                              {6, 5, 1, 112, 3},
                                              {6, 5, 2, 192, 4},
                                              {6, 3, 1, 320, 1}}};

constexpr std::int64_t stem_channels = 32, feature_channels = 1280;

constexpr std::int64_t total_blocks() {
  std::int64_t total = 0;
  for (const StageRow& row : stage_rows) total += row.blocks;
  return total;
}

}  // namespace

EfficientNet::EfficientNet(const EfficientNetOptions& options)
    : BackboneModel(feature_channels, options.classes, options.seed, options.dropout),
      options_(options),
      features_(std::make_unique<Container>()),
      classifier_(std::make_unique<Container>()) {
  check(options.stochastic_depth >= 0 && options.stochastic_depth < 1,
        "[efficientnet] expected a stochastic depth of 0 or more and less than 1, got {}",
        options.stochastic_depth);
  constexpr auto silu = FusedActivation::silu;
  StreamCounter streams(options.seed);
  stem_ = std::make_unique<ConvNormActivation>(options.channels, stem_channels,
                                               conv_options(3, 2, streams.next()), ConvNormOptions{}, silu);
  features_->add_child("0", *stem_);
  std::int64_t in = stem_channels;
  for (const StageRow& row : stage_rows) {
    stages_.push_back(std::make_unique<Container>());
    for (std::int64_t i = 0; i < row.blocks; ++i) {
      const auto number = static_cast<std::uint32_t>(blocks_.size());
      blocks_.push_back(std::make_unique<InvertedResidual>(
          InvertedResidualOptions{
              .in = in,
              .expanded = in * row.expansion,
              .out = row.out,
              .kernel = row.kernel,
              .stride = i == 0 ? row.stride : 1,
              .squeezed = std::max<std::int64_t>(1, in / 4),
              .activation = silu,
              .squeeze_activation = Activation::silu,
              .gate = Activation::sigmoid,
              .drop_probability = options.stochastic_depth * number / static_cast<double>(total_blocks())},
          options.seed, 1 + number, streams));
      stages_.back()->add_child(std::to_string(i), *blocks_.back());
      in = row.out;
    }
    features_->add_child(std::to_string(stages_.size()), *stages_.back());
  }
  last_ = std::make_unique<ConvNormActivation>(in, feature_channels, conv_options(1, 1, streams.next()),
                                               ConvNormOptions{}, silu);
  features_->add_child(std::to_string(stages_.size() + 1), *last_);
  add_child("features", *features_);
  // torchvision's range of 1,000 classes: its range for two would begin with a loss of 9.
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(options.classes, 1000)));
  const Tensor weight = head_layer().weight().detach();
  copy_into(weight, uniform(weight.shape(), -bound, bound, streams.next()));
  if (head_dropout()) classifier_->add_child("0", *head_dropout());
  classifier_->add_child("1", head_layer());
  add_child("classifier", *classifier_);
}

EfficientNet::~EfficientNet() = default;

Tensor EfficientNet::compute(const Tensor& x, std::vector<Tensor>* means) {
  check(x.rank() == 4 && x.size(3) == options_.channels,
        "[efficientnet] expected images (n, height, width, {}), got {}", options_.channels, x.shape());
  Tensor y = stem_->forward(x);
  auto block = blocks_.begin();
  std::int64_t stride = 2;
  for (const StageRow& row : stage_rows) {
    if (row.stride == 2) {
      if (means && stride >= 8) means->push_back(image_mean(y));
      stride *= 2;
    }
    for (std::int64_t i = 0; i < row.blocks; ++i) y = (*block++)->forward(y);
  }
  return image_mean(last_->forward(y));
}

Tensor EfficientNet::features(const Tensor& x) {
  return compute(x, nullptr);
}

Tensor EfficientNet::stage_features(const Tensor& x) {
  std::vector<Tensor> means;
  means.push_back(compute(x, &means));
  return concat(means, 1);
}

std::vector<std::vector<std::string>> EfficientNet::stages() const {
  std::vector<std::vector<std::string>> all;
  for (std::size_t i = 0; i < stages_.size(); ++i) all.push_back({fmt::format("features.{}", i + 1)});
  all.front().push_back("features.0");
  return all;
}

void EfficientNet::freeze_statistics() {
  stem_->freeze_statistics();
  for (const auto& block : blocks_) block->freeze_statistics();
  last_->freeze_statistics();
}

}  // namespace tandem
