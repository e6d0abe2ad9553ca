// SGD (momentum, Nesterov, weight decay), Adam and AdamW. A step is one fused pass over all parameters:
// SGD(model.parameters(), {.lr = 0.1, .momentum = 0.9}).step().
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "tandem/optim/optimizer.h"
#include "tandem/optim/optimizer_options.h"

namespace tandem {
namespace detail {
struct UpdateTable;
}

/// The optimizer that OptimizerOptions select. In the steady state a step allocates no memory. All parameters
/// share one step count for Adam's bias correction. Its state is "<parameter>.momentum" (SGD) or ".mean" and
/// ".square" (Adam, AdamW).
class FusedOptimizer : public Optimizer {
 public:
  /// Throws Error for options out of range, and as Optimizer does.
  FusedOptimizer(NamedTensors parameters, const OptimizerOptions& options, double learning_rate);
  ~FusedOptimizer() override;

  /// prepare_step(), then apply(). Gradients are only read.
  void step() override;
  /// First half of step(): increments the step count and copies the step's hyperparameters to the device.
  void prepare_step();
  /// Second half of step(): the update itself. May be captured in a CUDA graph; every replay uses the
  /// hyperparameters of the latest prepare_step().
  void apply();

  /// Momentum of SGD, beta1 of Adam and AdamW.
  double momentum() const;
  /// Throws Error if SGD was constructed without momentum and `momentum` is not 0, or the other way round.
  void set_momentum(double momentum);
  const OptimizerOptions& options() const { return options_; }
  /// Multiplies the learning rate by a factor for each parameter, from the next prepare_step() on: one finite
  /// factor of 0 or more per parameter, or none for all 1. `decay_factors` multiply the weight decay in the
  /// same way: with 1 / factor a parameter decays as much per step as one without a factor. Throws Error for
  /// others, and if fused() is null.
  void set_rate_factors(std::vector<double> factors, std::vector<double> decay_factors = {});
  const std::vector<double>& rate_factors() const { return rate_factors_; }

  FusedOptimizer* fused() override { return this; }

 protected:
  /// The addresses of parameters and states, for update_parameters().
  const detail::UpdateTable& table() const { return *table_; }
  /// What apply() does with the contiguous gradient of each parameter, or null, and the step's
  /// hyperparameters on the device.
  virtual void update_parameters(std::span<const std::byte* const> gradients, const Tensor& hyperparameters);

 private:
  void prepare_rates();

  OptimizerOptions options_;
  std::vector<double> rate_factors_;   // empty: all 1
  std::vector<double> decay_factors_;  // empty: all 1; else rate_factors_ are not empty
  Tensor hyperparameters_;  // detail::StepHyperparameters on the device; with factors, one per parameter
  std::unique_ptr<detail::UpdateTable> table_;
  std::vector<const std::byte*> gradient_addresses_;
};

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
};

/// Stochastic gradient descent.
class SGD : public FusedOptimizer {
 public:
  explicit SGD(NamedTensors parameters, const SgdOptions& options = {});
};

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;  ///< added to the gradient (L2)
};

/// Adam (Kingma and Ba 2014).
class Adam : public FusedOptimizer {
 public:
  explicit Adam(NamedTensors parameters, const AdamOptions& options = {});
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;  ///< decoupled: shrinks the weight
};

/// Adam with decoupled weight decay (Loshchilov and Hutter 2017).
class AdamW : public FusedOptimizer {
 public:
  explicit AdamW(NamedTensors parameters, const AdamWOptions& options = {});
};

}  // namespace tandem
