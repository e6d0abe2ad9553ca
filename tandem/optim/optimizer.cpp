#include "tandem/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/device/on_backend.h"
#include "tandem/nn/copy_named.h"
#include "tandem/ops/fill.h"
#include "tandem/optim/fused_update.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

bool is_fraction(double value) {
  return value >= 0 && value < 1;
}

void check_options(const OptimizerOptions& options) {
  check(std::isfinite(options.weight_decay) && options.weight_decay >= 0,
        "[optimizer] expected a finite weight decay of 0 or more, got {}", options.weight_decay);
  if (options.kind == OptimizerKind::sgd) {
    check(std::isfinite(options.momentum) && options.momentum >= 0,
          "[optimizer] expected a finite momentum of 0 or more, got {}", options.momentum);
    check(!options.nesterov || options.momentum > 0,
          "[optimizer] expected a momentum above 0 for Nesterov, got {}", options.momentum);
  } else {
    check(is_fraction(options.beta1) && is_fraction(options.beta2),
          "[optimizer] expected betas of 0 or more and less than 1, got {} and {}", options.beta1,
          options.beta2);
    check(std::isfinite(options.epsilon) && options.epsilon >= 0,
          "[optimizer] expected a finite epsilon of 0 or more, got {}", options.epsilon);
  }
}

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

const char* state_name(OptimizerKind kind, int index) {
  if (kind == OptimizerKind::sgd) return ".momentum";
  return index == 0 ? ".mean" : ".square";
}

Tensor step_tensor(std::int64_t step) {
  return Tensor::from(std::vector<std::int64_t>{step}, {});
}

}  // namespace

Optimizer::Optimizer(NamedTensors parameters, const OptimizerOptions& options, double learning_rate)
    : parameters_(std::move(parameters)), options_(options) {
  check_options(options_);
  check_parameters(parameters_);
  set_learning_rate(learning_rate);
  const Device device = parameters_.front().tensor.device();
  const DType dtype = parameters_.front().tensor.dtype();
  std::vector<detail::UpdateSlot> slots;
  for (const auto& [name, tensor] : parameters_) {
    detail::UpdateSlot slot{.weight = tensor.bytes(), .states = {}, .count = tensor.numel()};
    for (int k = 0; k < options_.state_count(); ++k) {
      states_.push_back({name + state_name(options_.kind, k), zeros(tensor.shape(), dtype, device)});
      slot.states[k] = states_.back().tensor.bytes();
    }
    slots.push_back(slot);
  }
  table_ = std::make_unique<detail::UpdateTable>(detail::make_update_table(std::move(slots), device));
  hyperparameters_ = Tensor::empty({detail::step_hyperparameter_count}, dtype, device);
  gradients_.resize(parameters_.size());
  gradient_addresses_.resize(parameters_.size());
}

Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;

void Optimizer::prepare_step() {
  for (const auto& [name, parameter] : parameters_)
    check(!parameter.node() || !parameter.node()->replaced,
          "[optimizer] expected the parameters of the model, got '{}', which the model has replaced: "
          "construct the "
          "optimizer after moving the model to a device or replacing a layer",
          name);
  ++step_count_;
  const Device device = hyperparameters_.device();
  on_backend(device, "optimizer", [&]<Backend B>() {
    detail::write_hyperparameters_kernel<B>(options_, hyperparameters_.dtype(), learning_rate_, step_count_,
                                            hyperparameters_.bytes(), current_stream(device));
  });
}

void Optimizer::apply() {
  check(step_count_ > 0, "[optimizer] expected prepare_step() before apply()");
  const Device device = hyperparameters_.device();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, parameter] = parameters_[i];
    const Tensor gradient = parameter.grad();
    gradient_addresses_[i] = nullptr;
    if (!gradient.defined()) continue;
    common_device("optimizer", {&parameter, &gradient});
    common_dtype("optimizer", {&parameter, &gradient});
    check(gradient.shape() == parameter.shape(),
          "[optimizer] expected a gradient of shape {} for '{}', got {}", parameter.shape().to_string(), name,
          gradient.shape().to_string());
    gradients_[i] = gradient.contiguous();
    gradient_addresses_[i] = gradients_[i].bytes();
  }
  on_backend(device, "optimizer", [&]<Backend B>() {
    detail::fused_update_kernel<B>(options_, hyperparameters_.dtype(), *table_, gradient_addresses_,
                                   hyperparameters_.bytes(), current_stream(device));
  });
  std::fill(gradients_.begin(), gradients_.end(), Tensor());
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

double Optimizer::momentum() const {
  return options_.kind == OptimizerKind::sgd ? options_.momentum : options_.beta1;
}

void Optimizer::set_momentum(double momentum) {
  OptimizerOptions changed = options_;
  (options_.kind == OptimizerKind::sgd ? changed.momentum : changed.beta1) = momentum;
  check_options(changed);
  check(changed.state_count() == options_.state_count(),
        "[optimizer] expected momentum to stay zero or nonzero as at construction, got {} after {}", momentum,
        options_.momentum);
  options_ = changed;
}

void Optimizer::set_step_count(std::int64_t count) {
  check(count >= 0, "[optimizer] expected a step count of 0 or more, got {}", count);
  step_count_ = count;
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

SGD::SGD(NamedTensors parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters),
                {.kind = OptimizerKind::sgd,
                 .momentum = options.momentum,
                 .nesterov = options.nesterov,
                 .weight_decay = options.weight_decay},
                options.lr) {}

Adam::Adam(NamedTensors parameters, const AdamOptions& options)
    : Optimizer(std::move(parameters),
                {.kind = OptimizerKind::adam,
                 .weight_decay = options.weight_decay,
                 .beta1 = options.beta1,
                 .beta2 = options.beta2,
                 .epsilon = options.epsilon},
                options.lr) {}

AdamW::AdamW(NamedTensors parameters, const AdamWOptions& options)
    : Optimizer(std::move(parameters),
                {.kind = OptimizerKind::adamw,
                 .weight_decay = options.weight_decay,
                 .beta1 = options.beta1,
                 .beta2 = options.beta2,
                 .epsilon = options.epsilon},
                options.lr) {}

}  // namespace tandem
