#include "tandem/optim/weight_average.h"

#include <utility>

#include "tandem/core/check.h"
#include "tandem/device/on_backend.h"
#include "tandem/nn/copy_named.h"
#include "tandem/optim/fused_update.h"
#include "tandem/tensor/copy.h"

namespace tandem {
namespace {

NamedTensors clones(const NamedTensors& tensors) {
  NamedTensors result;
  for (const auto& [name, tensor] : tensors) result.push_back({name, tensor.detach().clone()});
  return result;
}

void check_parameters(const NamedTensors& parameters) {
  check(!parameters.empty(), "[weight_average] expected a module with parameters, got none");
  const Tensor& first = parameters.front().tensor;
  check(first.dtype() == DType::f32 || first.dtype() == DType::f64,
        "[weight_average] expected parameters of f32 or f64, got {}", name_of(first.dtype()));
  for (const auto& [name, tensor] : parameters) {
    common_device("weight_average", {&first, &tensor});
    common_dtype("weight_average", {&first, &tensor});
  }
}

// Errors unless the tensors still match those that were averaged before.
void check_same(const NamedTensors& averages, const NamedTensors& current) {
  check(averages.size() == current.size(), "[weight_average] expected {} tensors as before, got {}",
        averages.size(), current.size());
  for (std::size_t i = 0; i < current.size(); ++i) {
    const Tensor &average = averages[i].tensor, &tensor = current[i].tensor;
    check(averages[i].name == current[i].name && average.shape() == tensor.shape() &&
              average.dtype() == tensor.dtype() && average.device() == tensor.device(),
          "[weight_average] expected '{}' as before, {} {} on {}, got '{}', {} {} on {}", averages[i].name,
          name_of(average.dtype()), average.shape().to_string(), average.device().to_string(),
          current[i].name, name_of(tensor.dtype()), tensor.shape().to_string(), tensor.device().to_string());
    check(tensor.is_contiguous(), "[weight_average] expected contiguous tensors, got a strided view for '{}'",
          current[i].name);
  }
}

NamedTensors joined(NamedTensors first, const NamedTensors& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

struct WeightAverage::Group {
  std::vector<std::size_t> members;  // indices of the tensors in their list
  detail::UpdateTable table;
  std::vector<const std::byte*> sources;

  // The tensors of the dtype.
  Group(const NamedTensors& averages, DType dtype, Device device) {
    std::vector<detail::UpdateSlot> slots;
    for (std::size_t i = 0; i < averages.size(); ++i) {
      const Tensor& average = averages[i].tensor;
      if (average.dtype() != dtype) continue;
      members.push_back(i);
      slots.push_back({.weight = average.bytes(), .states = {}, .count = average.numel()});
    }
    sources.resize(slots.size());
    table = detail::make_update_table(std::move(slots), device);
  }

  void update(detail::OtherRule rule, const NamedTensors& current, const Tensor& hyperparameters) {
    for (std::size_t i = 0; i < members.size(); ++i) sources[i] = current[members[i]].tensor.bytes();
    const Device device = hyperparameters.device();
    on_backend(device, "weight_average", [&]<Backend B>() {
      detail::fused_update_kernel<B>(rule, hyperparameters.dtype(), table, sources, hyperparameters.bytes(),
                                     current_stream(device));
    });
  }
};

WeightAverage::WeightAverage(const Module& module, double decay) : module_(module), decay_(decay) {
  check(decay >= 0 && decay < 1, "[weight_average] expected a decay of 0 or more and less than 1, got {}",
        decay);
  check_parameters(module.parameters());
  parameters_ = clones(module.parameters());
  buffers_ = clones(module.buffers());
  check_same(parameters_, module.parameters());
  const Device device = parameters_.front().tensor.device();
  const DType dtype = parameters_.front().tensor.dtype();
  averaged_ = std::make_unique<Group>(parameters_, dtype, device);
  copied_ = std::make_unique<Group>(buffers_, dtype, device);
  hyperparameters_ = Tensor::empty({detail::step_hyperparameter_count}, dtype, device);
  on_backend(device, "weight_average", [&]<Backend B>() {
    detail::write_hyperparameters_kernel<B>({.kind = OptimizerKind::sgd}, dtype, 1 - decay, 1,
                                            hyperparameters_.bytes(), current_stream(device));
  });
}

WeightAverage::~WeightAverage() = default;

void WeightAverage::update() {
  const NamedTensors parameters = module_.parameters(), buffers = module_.buffers();
  check_same(parameters_, parameters);
  check_same(buffers_, buffers);
  averaged_->update(detail::OtherRule::average, parameters, hyperparameters_);
  copied_->update(detail::OtherRule::copy, buffers, hyperparameters_);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].tensor.dtype() != hyperparameters_.dtype())
      copy_into(buffers_[i].tensor, buffers[i].tensor);
}

void WeightAverage::restart() {
  load_state(joined(module_.parameters(), module_.buffers()));
}

void WeightAverage::swap(Module& module) {
  const NamedTensors own = clones(joined(module.parameters(), module.buffers()));
  copy_to(module);
  load_state(own);
}

void WeightAverage::copy_to(Module& module) const {
  copy_named("weight_average", joined(module.parameters(), module.buffers()), state());
  module.invalidate_caches();
}

NamedTensors WeightAverage::state() const {
  return joined(parameters_, buffers_);
}

void WeightAverage::load_state(const NamedTensors& state) {
  copy_named("weight_average", this->state(), state);
}

}  // namespace tandem
