#include "tandem/optim/weight_average.h"

#include <utility>

#include "tandem/core/check.h"
#include "tandem/device/on_backend.h"
#include "tandem/nn/copy_named.h"
#include "tandem/optim/tensor_group.h"
#include "tandem/tensor/copy.h"

namespace tandem {

using detail::clones;
using detail::joined;
using detail::TensorGroup;

namespace {

constexpr const char* op = "weight_average";

}  // namespace

WeightAverage::WeightAverage(const Module& module, double decay) : module_(module), decay_(decay) {
  check(decay >= 0 && decay < 1, "[weight_average] expected a decay of 0 or more and less than 1, got {}",
        decay);
  detail::check_averaged(op, module.parameters());
  parameters_ = clones(module.parameters());
  buffers_ = clones(module.buffers());
  detail::check_same(op, parameters_, module.parameters());
  const Device device = parameters_.front().tensor.device();
  const DType dtype = parameters_.front().tensor.dtype();
  averaged_ = std::make_unique<TensorGroup>(parameters_, dtype, device);
  copied_ = std::make_unique<TensorGroup>(buffers_, dtype, device);
  hyperparameters_ = Tensor::empty({detail::step_hyperparameter_count}, dtype, device);
  on_backend(device, "weight_average", [&]<Backend B>() {
    detail::write_hyperparameters_kernel<B>({.kind = OptimizerKind::sgd}, dtype, 1 - decay, 1,
                                            hyperparameters_.bytes(), current_stream(device));
  });
}

WeightAverage::~WeightAverage() = default;

void WeightAverage::update() {
  const NamedTensors parameters = module_.parameters(), buffers = module_.buffers();
  detail::check_same(op, parameters_, parameters);
  detail::check_same(op, buffers_, buffers);
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
