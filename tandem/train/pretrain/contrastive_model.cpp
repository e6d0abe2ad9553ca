#include "tandem/train/pretrain/contrastive_model.h"

#include <fmt/format.h>

#include <utility>

#include "tandem/core/check.h"
#include "tandem/nn/activation.h"
#include "tandem/nn/batch_norm.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/concat.h"
#include "tandem/ops/cross_entropy.h"

namespace tandem::detail {
namespace {

// Streams of the seed that the models do not use.
constexpr std::uint64_t first_stream = 0x70726f6a0000;

}  // namespace

ContrastiveModel::ContrastiveModel(std::unique_ptr<BackboneModel> backbone,
                                   std::span<const std::int64_t> attribute_sizes, std::uint64_t seed)
    : backbone_(std::move(backbone)) {
  const std::int64_t features = backbone_->feature_count();
  std::uint64_t stream = first_stream;
  const auto random = [&] { return RandomOptions{.seed = seed, .stream = stream++}; };
  projection_.emplace<Linear>(features, features, LinearOptions{.bias = false, .random = random()});
  projection_.emplace<BatchNorm>(features);
  projection_.emplace<ReLU>();
  projection_.emplace<Linear>(features, embedding_size, LinearOptions{.random = random()});
  backbone_->head_layer().freeze();
  add_children({{"backbone", *backbone_}, {"projection", projection_}});
  for (const std::int64_t size : attribute_sizes) {
    attribute_heads_.push_back(std::make_unique<Linear>(features, size, LinearOptions{.random = random()}));
    add_child(fmt::format("attribute{}", attribute_heads_.size()), *attribute_heads_.back());
  }
}

Tensor ContrastiveModel::attribute_loss(const Tensor& features, const Tensor& attributes) {
  const std::int64_t images = attributes.size(0), heads = std::ssize(attribute_heads_);
  expect(heads > 0 && heads == attributes.size(1) && features.size(0) % images == 0);
  Tensor sum;
  for (std::int64_t k = 0; k < heads; ++k) {
    const Tensor one = attributes.slice(1, k, k + 1).contiguous().reshape({images});
    const std::vector<Tensor> views(static_cast<std::size_t>(features.size(0) / images), one);
    const Tensor logits = attribute_heads_[static_cast<std::size_t>(k)]->forward(features);
    const Tensor loss = cross_entropy(logits, concat(views, 0));
    sum = sum.defined() ? add(sum, loss) : loss;
  }
  return multiply(sum, 1.0 / static_cast<double>(heads));
}

}  // namespace tandem::detail
