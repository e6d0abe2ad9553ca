#include "tandem/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/nn/copy_named.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

void check_parameters(const NamedTensors& parameters) {
  check(!parameters.empty(), "[optimizer] expected at least one parameter, got none");
  const Tensor& first = parameters.front().tensor;
  std::set<std::string> names;
  for (const auto& [name, tensor] : parameters) {
    common_device("optimizer", {&first, &tensor});
    common_dtype("optimizer", {&first, &tensor});
    check(names.insert(name).second, "[optimizer] expected distinct names, got '{}' twice", name);
    check(tensor.is_contiguous(), "[optimizer] expected contiguous parameters, got a strided view for '{}'",
          name);
  }
  check(first.dtype() == DType::f32 || first.dtype() == DType::f64,
        "[optimizer] expected parameters of f32 or f64, got {}", name_of(first.dtype()));
}

Tensor step_tensor(std::int64_t step) {
  return Tensor::from(std::vector<std::int64_t>{step}, {});
}

}  // namespace

Optimizer::Optimizer(NamedTensors parameters, double learning_rate) : parameters_(std::move(parameters)) {
  check_parameters(parameters_);
  set_learning_rate(learning_rate);
}

void Optimizer::step() {
  const NoGrad no_grad;
  const std::vector<Tensor> gradients = checked_gradients();
  count_step();
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (gradients[i].defined()) update(i, parameters_[i].tensor, gradients[i]);
}

void Optimizer::count_step() {
  for (const auto& [name, parameter] : parameters_)
    check(!parameter.node() || !parameter.node()->replaced,
          "[optimizer] expected the parameters of the model, got '{}', which the model has replaced: "
          "construct the optimizer after moving the model to a device or replacing a layer",
          name);
  ++step_count_;
}

void Optimizer::update(std::size_t, const Tensor&, const Tensor&) {
  fail("[optimizer] expected a class that overrides update() or step()");
}

std::vector<Tensor> Optimizer::checked_gradients() const {
  std::vector<Tensor> gradients;
  for (const auto& [name, parameter] : parameters_) {
    const Tensor& gradient = gradients.emplace_back(parameter.grad());
    if (!gradient.defined()) continue;
    common_device("optimizer", {&parameter, &gradient});
    common_dtype("optimizer", {&parameter, &gradient});
    check(gradient.shape() == parameter.shape(),
          "[optimizer] expected a gradient of shape {} for '{}', got {}", parameter.shape().to_string(), name,
          gradient.shape().to_string());
  }
  return gradients;
}

void Optimizer::zero_grad() {
  for (const auto& [name, parameter] : parameters_)
    if (parameter.requires_grad()) parameter.set_grad(Tensor());
}

void Optimizer::set_learning_rate(double rate) {
  check(std::isfinite(rate) && rate >= 0, "[optimizer] expected a finite learning rate of 0 or more, got {}",
        rate);
  learning_rate_ = rate;
}

void Optimizer::set_step_count(std::int64_t count) {
  check(count >= 0, "[optimizer] expected a step count of 0 or more, got {}", count);
  step_count_ = count;
}

void Optimizer::add_state(std::string name, Tensor tensor) {
  const bool is_new = name != "step" && std::ranges::find(states_, name, &NamedTensor::name) == states_.end();
  check(!name.empty() && is_new && tensor.defined(),
        "[optimizer] expected a new name and a tensor as state, got {}",
        !tensor.defined() ? "no tensor" : "'" + name + "'");
  states_.push_back({std::move(name), std::move(tensor)});
}

const Tensor& Optimizer::state_tensor(std::size_t index) const {
  check(index < states_.size(), "[optimizer] expected the index of one of {} states, got {}", states_.size(),
        index);
  return states_[index].tensor;
}

NamedTensors Optimizer::state() const {
  NamedTensors all = states_;
  all.push_back({"step", step_tensor(step_count_)});
  return all;
}

void Optimizer::load_state(const NamedTensors& state) {
  std::int64_t step = step_count_;
  for (const auto& [name, tensor] : state)
    if (name == "step" && tensor.defined() && tensor.dtype() == DType::i64 && tensor.numel() == 1)
      step = tensor.item<std::int64_t>();
  check(step >= 0, "[optimizer] expected a step count of 0 or more, got {}", step);
  copy_named("optimizer", this->state(), state);
  set_step_count(step);
}

}  // namespace tandem
