#include "tandem/nn/backbone_model.h"

#include <algorithm>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/ops/conv/pool_kernel.h"

namespace tandem {

BackboneModel::BackboneModel(std::int64_t features, std::int64_t classes, std::uint64_t seed, double dropout)
    : head_(features, classes, {.random = {.seed = seed, .stream = 1001}}),
      dropout_(dropout != 0 ? std::make_unique<Dropout>(dropout, seed) : nullptr) {}

Tensor BackboneModel::head(const Tensor& features) {
  return head_.forward(dropout_ ? dropout_->forward(features) : features);
}

void BackboneModel::set_feature_function(std::function<Tensor(const Tensor&)> compute) {
  feature_function_ = std::move(compute);
}

Tensor BackboneModel::head_input(const Tensor& x) {
  return feature_function_ ? feature_function_(x) : features(x);
}

Tensor BackboneModel::image_mean(const Tensor& y) {
  return detail::image_mean(y);
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

std::int64_t BackboneModel::stage_of(const std::string& parameter_name) const {
  const std::vector<std::vector<std::string>> all = stages();
  if (is_head(parameter_name)) return std::ssize(all);
  const auto found = std::ranges::find_if(all, [&](const std::vector<std::string>& children) {
    return std::ranges::any_of(
        children, [&](const std::string& child) { return parameter_name.starts_with(child + "."); });
  });
  return std::min<std::int64_t>(found - all.begin(), std::ssize(all) - 1);
}

void BackboneModel::freeze_stages(std::int64_t count) {
  check(count >= 0 && count <= stage_count(),
        "[freeze] expected 0 to {} stages, as many as the model has, got {}", stage_count(), count);
  for (NamedTensor& parameter : parameters())
    if (stage_of(parameter.name) < count) parameter.tensor.set_requires_grad(false);
}

void BackboneModel::freeze_backbone() {
  freeze_stages(stage_count());
}

bool BackboneModel::is_backbone_frozen() const {
  for (const NamedTensor& parameter : parameters())
    if (parameter.tensor.requires_grad() && !is_head(parameter.tensor)) return false;
  return true;
}

}  // namespace tandem
