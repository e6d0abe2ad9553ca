#include "tandem/optim/tensor_group.h"

#include <utility>

#include "tandem/core/check.h"
#include "tandem/device/on_backend.h"

namespace tandem::detail {

TensorGroup::TensorGroup(const NamedTensors& tensors, DType dtype, Device device) {
  std::vector<UpdateSlot> slots;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i].tensor;
    if (tensor.dtype() != dtype) continue;
    members_.push_back(i);
    slots.push_back({.weight = tensor.bytes(), .states = {}, .count = tensor.numel()});
  }
  sources_.resize(slots.size());
  table_ = make_update_table(std::move(slots), device);
}

void TensorGroup::update(OtherRule rule, const NamedTensors& sources, const Tensor& hyperparameters) {
  for (std::size_t i = 0; i < members_.size(); ++i) sources_[i] = sources[members_[i]].tensor.bytes();
  const Device device = hyperparameters.device();
  on_backend(device, "tensor_group", [&]<Backend B>() {
    fused_update_kernel<B>(rule, hyperparameters.dtype(), table_, sources_, hyperparameters.bytes(),
                           current_stream(device));
  });
}

NamedTensors clones(const NamedTensors& tensors) {
  NamedTensors result;
  for (const auto& [name, tensor] : tensors) result.push_back({name, tensor.detach().clone()});
  return result;
}

NamedTensors joined(NamedTensors first, const NamedTensors& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

void check_averaged(const char* op, const NamedTensors& parameters) {
  check(!parameters.empty(), "[{}] expected a module with parameters, got none", op);
  const Tensor& first = parameters.front().tensor;
  check(first.dtype() == DType::f32 || first.dtype() == DType::f64,
        "[{}] expected parameters of f32 or f64, got {}", op, name_of(first.dtype()));
  for (const auto& [name, tensor] : parameters) {
    common_device(op, {&first, &tensor});
    common_dtype(op, {&first, &tensor});
  }
}

void check_same(const char* op, const NamedTensors& averages, const NamedTensors& current) {
  check(averages.size() == current.size(), "[{}] expected {} tensors as before, got {}", op, averages.size(),
        current.size());
  for (std::size_t i = 0; i < current.size(); ++i) {
    const Tensor &average = averages[i].tensor, &tensor = current[i].tensor;
    check(averages[i].name == current[i].name && average.shape() == tensor.shape() &&
              average.dtype() == tensor.dtype() && average.device() == tensor.device(),
          "[{}] expected '{}' as before, {} {} on {}, got '{}', {} {} on {}", op, averages[i].name,
          name_of(average.dtype()), average.shape().to_string(), average.device().to_string(),
          current[i].name, name_of(tensor.dtype()), tensor.shape().to_string(), tensor.device().to_string());
    check(tensor.is_contiguous(), "[{}] expected contiguous tensors, got a strided view for '{}'", op,
          current[i].name);
  }
}

}  // namespace tandem::detail
