// Optimizers: SGD (momentum, Nesterov, weight decay), Adam and AdamW. A step is one fused pass over all
// parameters: SGD(model.parameters(), {.lr = 0.1, .momentum = 0.9}).step().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/optim/optimizer_options.h"
#include "tandem/tensor/named_tensor.h"

namespace tandem {
namespace detail {
struct UpdateTable;
}

/// Updates parameters in place through the handles it was constructed with. In the steady state a step
/// allocates no memory. Not thread-safe.
class Optimizer {
 public:
  /// Parameters must be contiguous, on one device, with distinct names, and all f32 or all f64; options must
  /// be in range. Otherwise throws Error.
  Optimizer(NamedTensors parameters, const OptimizerOptions& options, double learning_rate);
  virtual ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates every parameter that has a gradient; gradients are only read. All parameters share one step
  /// count for Adam's bias correction. Throws Error if a gradient has another shape, dtype or device, and if
  /// a module has replaced a parameter since, as Module::to() does.
  void step() {
    prepare_step();
    apply();
  }
  /// First half of step(): increments the step count and copies the step's hyperparameters to the device.
  void prepare_step();
  /// Second half of step(): the update itself. May be captured in a CUDA graph; every replay uses the
  /// hyperparameters of the latest prepare_step().
  void apply();

  /// Drops the gradients of all parameters.
  void zero_grad();

  double learning_rate() const { return learning_rate_; }
  /// Takes effect at the next prepare_step() or step().
  void set_learning_rate(double rate);
  /// Momentum of SGD, beta1 of Adam and AdamW.
  double momentum() const;
  /// Throws Error if SGD was constructed without momentum and `momentum` is not 0, or the other way round.
  void set_momentum(double momentum);
  std::int64_t step_count() const { return step_count_; }
  /// For training loops that make steps without this object.
  void set_step_count(std::int64_t count);
  const OptimizerOptions& options() const { return options_; }

  /// The state for a checkpoint: "<parameter>.momentum" (SGD) or ".mean" and ".square" (Adam, AdamW), which
  /// share this optimizer's memory, and "step", a copy of the step count.
  NamedTensors state() const;
  /// Throws Error and changes nothing unless names, shapes and dtypes are those of state().
  void load_state(const NamedTensors& state);

 private:
  NamedTensors parameters_;
  OptimizerOptions options_;
  double learning_rate_ = 0;
  std::int64_t step_count_ = 0;
  NamedTensors states_;     // state_count() per parameter, in the order of the parameters
  Tensor hyperparameters_;  // detail::StepHyperparameters on the device
  std::unique_ptr<detail::UpdateTable> table_;
  std::vector<Tensor> gradients_;  // of the current step
  std::vector<const std::byte*> gradient_addresses_;
};

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
};

/// Stochastic gradient descent.
class SGD : public Optimizer {
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
class Adam : public Optimizer {
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
class AdamW : public Optimizer {
 public:
  explicit AdamW(NamedTensors parameters, const AdamWOptions& options = {});
};

}  // namespace tandem
