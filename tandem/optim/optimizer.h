// Optimizer: the base class of the built-in optimizers (fused_optimizer.h) and of a user's own, which
// override update().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tandem/tensor/named_tensor.h"

namespace tandem {

class FusedOptimizer;

/// Updates parameters in place through the handles it was constructed with, so construct it after
/// Module::to(). Neither copied nor moved; not thread-safe.
class Optimizer {
 public:
  /// Parameters must be contiguous, on one device, with distinct names, and all f32 or all f64; the learning
  /// rate finite and not negative. Otherwise throws Error.
  Optimizer(NamedTensors parameters, double learning_rate);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Counts the step, then calls update() for every parameter that has a gradient, without recording on the
  /// tape. Throws Error if a gradient has another shape,
  /// dtype or device, and if a module has replaced a parameter since, as Module::to() does.
  virtual void step();
  /// The rule of an own optimizer: changes `parameter`, number `index` of parameters(), in place. Called by
  /// step(); step_count() counts this step already.
  virtual void update(std::size_t index, const Tensor& parameter, const Tensor& gradient);

  /// Drops the gradients of all parameters.
  void zero_grad();

  const NamedTensors& parameters() const { return parameters_; }
  double learning_rate() const { return learning_rate_; }
  /// Takes effect at the next step. Throws Error for a rate that is negative or not finite.
  void set_learning_rate(double rate);
  std::int64_t step_count() const { return step_count_; }
  /// For training loops that make steps without this object.
  void set_step_count(std::int64_t count);

  /// The state for a checkpoint: the tensors of add_state(), which share this optimizer's memory, and "step",
  /// a copy of the step count.
  NamedTensors state() const;
  /// Copies the values. Throws Error and changes nothing unless names, shapes and dtypes are those of
  /// state().
  void load_state(const NamedTensors& state);

  /// This optimizer if it is one of the fused rules, which the training engines include in their fast steps;
  /// null for any other.
  virtual FusedOptimizer* fused() { return nullptr; }

 protected:
  /// Adds a tensor to state(), usually in the constructor. Throws Error for a name that is empty or taken.
  void add_state(std::string name, Tensor tensor);
  /// The tensor of call number `index` of add_state(); shares its memory. Throws Error for an index out of
  /// range.
  const Tensor& state_tensor(std::size_t index) const;
  /// The gradient of each parameter, undefined where there is none. Throws Error if one has another shape,
  /// dtype or device than its parameter.
  std::vector<Tensor> checked_gradients() const;
  void count_step();

 private:
  NamedTensors parameters_;
  double learning_rate_ = 0;
  std::int64_t step_count_ = 0;
  NamedTensors states_;
};

}  // namespace tandem
