#include "tandem/nn/backbone_model.h"

#include <utility>

#include "tandem/core/check.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/conv/pool.h"

namespace tandem {

BackboneModel::BackboneModel(std::int64_t features, std::int64_t classes, std::uint64_t seed, double dropout)
    : head_(features, classes, {.random = {.seed = seed, .stream = 1001}}),
      dropout_(dropout != 0 ? std::make_unique<Dropout>(dropout, seed) : nullptr) {}

Tensor BackboneModel::head(const Tensor& features) {
  return head_.forward(dropout_ ? dropout_->forward(features) : features);
}

Tensor BackboneModel::image_mean(const Tensor& y) {
  return cast(adaptive_avg_pool2d(y, {1, 1}).reshape({y.size(0), y.size(3)}), DType::f32);
}

void BackboneModel::set_head(Linear head) {
  const Tensor& weight = head.weight();
  check(weight.defined() && weight.dtype() == DType::f32 && weight.size(1) == feature_count(),
        "[set_head] expected a layer with f32 weights (classes, {}), got {} {}", feature_count(),
        weight.defined() ? name_of(weight.dtype()) : "no", weight.shape().to_string());
  head.to(head_.weight().device());
  head_ = std::move(head);
  head_.train(is_training());
  invalidate_caches();
}

bool BackboneModel::is_head(const Tensor& parameter) const {
  return parameter.node() == head_.weight().node() || parameter.node() == head_.bias().node();
}

bool BackboneModel::is_head(const std::string& parameter_name) const {
  for (const NamedTensor& parameter : parameters())
    if (parameter.name == parameter_name) return is_head(parameter.tensor);
  return false;
}

void BackboneModel::freeze_backbone() {
  for (NamedTensor& parameter : parameters())
    if (!is_head(parameter.tensor)) parameter.tensor.set_requires_grad(false);
}

bool BackboneModel::is_backbone_frozen() const {
  for (const NamedTensor& parameter : parameters())
    if (parameter.tensor.requires_grad() && !is_head(parameter.tensor)) return false;
  return true;
}

}  // namespace tandem
