// A backbone with what contrastive training needs beside it: a projection head, which makes the embeddings
// that are compared, and heads that predict known attributes of the images.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tandem/nn/backbone_model.h"
#include "tandem/nn/sequential.h"

namespace tandem::detail {

class ContrastiveModel : public Module {
 public:
  static constexpr std::int64_t embedding_size = 128;

  // The last layer of the backbone is not used, and frozen. An attribute k is below attribute_sizes[k].
  ContrastiveModel(std::unique_ptr<BackboneModel> backbone, std::span<const std::int64_t> attribute_sizes,
                   std::uint64_t seed);

  // Normalized images → embeddings (n, embedding_size).
  Tensor forward(const Tensor& x) override { return project(backbone_->features(x)); }
  Tensor project(const Tensor& features) { return projection_.forward(features); }
  // The mean cross-entropy of all attributes, i32 (images, attributes). The features of an image are rows
  // i, i + images, ….
  Tensor attribute_loss(const Tensor& features, const Tensor& attributes);

  BackboneModel& backbone() { return *backbone_; }
  const BackboneModel& backbone() const { return *backbone_; }

 private:
  std::unique_ptr<BackboneModel> backbone_;
  Sequential projection_;
  std::vector<std::unique_ptr<Linear>> attribute_heads_;
};

}  // namespace tandem::detail
