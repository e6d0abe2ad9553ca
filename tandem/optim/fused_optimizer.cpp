#include "tandem/optim/fused_optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/fill.h"
#include "tandem/optim/fused_update.h"

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

const char* state_name(OptimizerKind kind, int index) {
  if (kind == OptimizerKind::sgd) return ".momentum";
  return index == 0 ? ".mean" : ".square";
}

}  // namespace

FusedOptimizer::FusedOptimizer(NamedTensors parameters, const OptimizerOptions& options, double learning_rate)
    : Optimizer(std::move(parameters), learning_rate), options_(options) {
  check_options(options_);
  const Device device = this->parameters().front().tensor.device();
  const DType dtype = this->parameters().front().tensor.dtype();
  const auto per_parameter = static_cast<std::size_t>(options_.state_count());
  std::vector<detail::UpdateSlot> slots;
  for (const auto& [name, tensor] : this->parameters()) {
    detail::UpdateSlot slot{.weight = tensor.bytes(), .states = {}, .count = tensor.numel()};
    for (int k = 0; k < options_.state_count(); ++k) {
      add_state(name + state_name(options_.kind, k), zeros(tensor.shape(), dtype, device));
      slot.states[k] = state_tensor(slots.size() * per_parameter + static_cast<std::size_t>(k)).bytes();
    }
    slots.push_back(slot);
  }
  gradient_addresses_.resize(slots.size());
  table_ = std::make_unique<detail::UpdateTable>(detail::make_update_table(std::move(slots), device));
  hyperparameters_ = Tensor::empty({detail::step_hyperparameter_count}, dtype, device);
}

FusedOptimizer::~FusedOptimizer() = default;

void FusedOptimizer::step() {
  prepare_step();
  apply();
}

void FusedOptimizer::set_rate_factors(std::vector<double> factors, std::vector<double> decay_factors) {
  check(fused() == this, "[optimizer] expected an optimizer whose rates can differ, got another");
  const auto check_factors = [&](const std::vector<double>& given, const char* what) {
    check(given.empty() || given.size() == parameters().size(),
          "[optimizer] expected {} {} factors, one per parameter, got {}", parameters().size(), what,
          given.size());
    for (const double factor : given)
      check(std::isfinite(factor) && factor >= 0,
            "[optimizer] expected finite {} factors of 0 or more, got {}", what, factor);
  };
  check_factors(factors, "rate");
  check_factors(decay_factors, "decay");
  if (factors.empty() && !decay_factors.empty()) factors.assign(decay_factors.size(), 1);
  rate_factors_ = std::move(factors);
  decay_factors_ = std::move(decay_factors);
  const auto sets = static_cast<std::int64_t>(std::max<std::size_t>(rate_factors_.size(), 1));
  hyperparameters_ = Tensor::empty({sets * detail::step_hyperparameter_count}, hyperparameters_.dtype(),
                                   hyperparameters_.device());
}

void FusedOptimizer::prepare_step() {
  count_step();
  const Device device = hyperparameters_.device();
  if (!rate_factors_.empty()) return prepare_rates();
  on_backend(device, "optimizer", [&]<Backend B>() {
    detail::write_hyperparameters_kernel<B>(options_, hyperparameters_.dtype(), learning_rate(), step_count(),
                                            hyperparameters_.bytes(), current_stream(device));
  });
}

void FusedOptimizer::prepare_rates() {
  const Device device = hyperparameters_.device();
  on_dtype(TypeList<float, double>{}, hyperparameters_.dtype(), "optimizer", [&]<class T>() {
    std::vector<detail::StepHyperparameters<T>> values;
    for (std::size_t i = 0; i < rate_factors_.size(); ++i) {
      OptimizerOptions own = options_;
      if (!decay_factors_.empty()) own.weight_decay *= decay_factors_[i];
      values.push_back(
          detail::step_hyperparameters<T>(own, learning_rate() * rate_factors_[i], step_count()));
    }
    on_backend(device, "optimizer", [&]<Backend B>() {
      copy_bytes<B>(hyperparameters_.bytes(), values.data(), values.size() * sizeof(values[0]),
                    current_stream(device));
    });
  });
}

void FusedOptimizer::apply() {
  check(step_count() > 0, "[optimizer] expected prepare_step() before apply()");
  std::vector<Tensor> gradients = checked_gradients();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined()) gradients[i] = gradients[i].contiguous();
    gradient_addresses_[i] = gradients[i].defined() ? gradients[i].bytes() : nullptr;
  }
  update_parameters(gradient_addresses_, hyperparameters_);
}

void FusedOptimizer::update_parameters(std::span<const std::byte* const> gradients,
                                       const Tensor& hyperparameters) {
  const Device device = hyperparameters.device();
  on_backend(device, "optimizer", [&]<Backend B>() {
    detail::fused_update_kernel<B>(options_, hyperparameters.dtype(), *table_, gradients,
                                   hyperparameters.bytes(), rate_factors_.empty() ? 0 : 1,
                                   current_stream(device));
  });
}

double FusedOptimizer::momentum() const {
  return options_.kind == OptimizerKind::sgd ? options_.momentum : options_.beta1;
}

void FusedOptimizer::set_momentum(double momentum) {
  OptimizerOptions changed = options_;
  (options_.kind == OptimizerKind::sgd ? changed.momentum : changed.beta1) = momentum;
  check_options(changed);
  check(changed.state_count() == options_.state_count(),
        "[optimizer] expected momentum to stay zero or nonzero as at construction, got {} after {}", momentum,
        options_.momentum);
  options_ = changed;
}

SGD::SGD(NamedTensors parameters, const SgdOptions& options)
    : FusedOptimizer(std::move(parameters),
                     {.kind = OptimizerKind::sgd,
                      .momentum = options.momentum,
                      .nesterov = options.nesterov,
                      .weight_decay = options.weight_decay},
                     options.lr) {}

Adam::Adam(NamedTensors parameters, const AdamOptions& options)
    : FusedOptimizer(std::move(parameters),
                     {.kind = OptimizerKind::adam,
                      .weight_decay = options.weight_decay,
                      .beta1 = options.beta1,
                      .beta2 = options.beta2,
                      .epsilon = options.epsilon},
                     options.lr) {}

AdamW::AdamW(NamedTensors parameters, const AdamWOptions& options)
    : FusedOptimizer(std::move(parameters),
                     {.kind = OptimizerKind::adamw,
                      .weight_decay = options.weight_decay,
                      .beta1 = options.beta1,
                      .beta2 = options.beta2,
                      .epsilon = options.epsilon},
                     options.lr) {}

}  // namespace tandem
