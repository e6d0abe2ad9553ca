#include "tandem/optim/clip_gradients.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/fill.h"
#include "tandem/optim/clip_gradients_kernel.h"
#include "tandem/optim/sum_of_squares.h"

namespace tandem::detail {
namespace {

template <class T>
void sum_chunk(const ClipWorkspace& workspace, std::int64_t index) {
  const auto [slot, begin, count] = chunk_at(workspace.table, index);
  const auto* const gradient = reinterpret_cast<const T*>(workspace.gradients[slot]);
  workspace.square_sums.data<double>()[index] = gradient ? sum_of_squares(gradient + begin, count) : 0;
}

}  // namespace

template <>
void clip_factor_kernel<Backend::cpu>(DType dtype, const ClipWorkspace& workspace, double max_norm,
                                      StreamView) {
  const std::int64_t chunks = workspace.table.first_chunk.back();
  on_dtype(TypeList<float, double>{}, dtype, "clip_gradients", [&]<class T>() {
    parallel_for(chunks, 8, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t index = begin; index < end; ++index) sum_chunk<T>(workspace, index);
    });
    double sum = 0;
    for (std::int64_t index = 0; index < chunks; ++index) sum += workspace.square_sums.data<double>()[index];
    const double norm = std::sqrt(sum);
    *workspace.norm.data<double>() = norm;
    StepHyperparameters<T> values{};
    values.rate = static_cast<T>(clip_factor(norm, max_norm));
    std::memcpy(workspace.hyperparameters.bytes(), &values, sizeof(values));
  });
}

}  // namespace tandem::detail

namespace tandem {

GradientClip::GradientClip(NamedTensors parameters, double max_norm)
    : parameters_(std::move(parameters)), max_norm_(max_norm) {
  check(std::isfinite(max_norm) && max_norm > 0, "[clip_gradients] expected a finite norm above 0, got {}",
        max_norm);
  check(!parameters_.empty(), "[clip_gradients] expected parameters, got none");
  const Tensor& first = parameters_.front().tensor;
  check(first.dtype() == DType::f32 || first.dtype() == DType::f64,
        "[clip_gradients] expected parameters of f32 or f64, got {}", name_of(first.dtype()));
  workspace_ = std::make_unique<detail::ClipWorkspace>();
  std::vector<detail::UpdateSlot> slots;
  for (const auto& [name, tensor] : parameters_) {
    common_device("clip_gradients", {&first, &tensor});
    common_dtype("clip_gradients", {&first, &tensor});
    workspace_->clipped.push_back(Tensor::empty(tensor.shape(), tensor.dtype(), tensor.device()));
    slots.push_back({.weight = workspace_->clipped.back().bytes(), .states = {}, .count = tensor.numel()});
  }
  workspace_->gradients.resize(slots.size());
  workspace_->table = detail::make_update_table(std::move(slots), first.device());
  workspace_->square_sums = zeros({workspace_->table.first_chunk.back()}, DType::f64, first.device());
  workspace_->norm = zeros({}, DType::f64, first.device());
  workspace_->hyperparameters = zeros({detail::step_hyperparameter_count}, first.dtype(), first.device());
}

GradientClip::~GradientClip() = default;

const Tensor& GradientClip::norm() const {
  return workspace_->norm;
}

void GradientClip::apply() {
  const Tensor& first = parameters_.front().tensor;
  const Device device = first.device();
  std::vector<Tensor> gradients;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, parameter] = parameters_[i];
    Tensor gradient = parameter.grad();
    check(!gradient.defined() || (gradient.shape() == parameter.shape() &&
                                  gradient.dtype() == parameter.dtype() && gradient.device() == device),
          "[clip_gradients] expected a gradient of '{}' like its parameter, {} {}, got {} {}", name,
          name_of(parameter.dtype()), parameter.shape().to_string(),
          gradient.defined() ? name_of(gradient.dtype()) : "", gradient.shape().to_string());
    gradients.push_back(gradient.defined() ? gradient.contiguous() : gradient);
    workspace_->gradients[i] = gradients.back().bytes();
  }
  on_backend(device, "clip_gradients", [&]<Backend B>() {
    const StreamView stream = current_stream(device);
    detail::clip_factor_kernel<B>(first.dtype(), *workspace_, max_norm_, stream);
    detail::fused_update_kernel<B>(detail::OtherRule::scale, first.dtype(), workspace_->table,
                                   workspace_->gradients, workspace_->hyperparameters.bytes(), stream);
  });
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (gradients[i].defined()) parameters_[i].tensor.set_grad(workspace_->clipped[i]);
}

}  // namespace tandem
