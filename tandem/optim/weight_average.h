// The exponential moving average of a module's weights, which usually generalizes better than the weights of
// the last step.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tandem/nn/module.h"

namespace tandem {
namespace detail {
class TensorGroup;
}

/// average ← decay · average + (1 − decay) · parameter, for every parameter; buffers, such as the statistics
/// of batch norms, are copied. Starts as a copy of the module, which must outlive it. Neither copied nor
/// moved; not thread-safe.
class WeightAverage {
 public:
  /// Parameters must be contiguous, on one device, and all f32 or all f64; the decay 0 or more and less than
  /// 1. Otherwise throws Error.
  WeightAverage(const Module& module, double decay);
  ~WeightAverage();
  WeightAverage(const WeightAverage&) = delete;
  WeightAverage& operator=(const WeightAverage&) = delete;

  /// Averages the current parameters; call it after every step of the optimizer. One pass over all of them
  /// and one over all buffers of their dtype. May be captured in a CUDA graph. Throws Error if the module has
  /// been moved to another device or has other parameters than before.
  void update();

  /// Starts again with a copy of the module.
  void restart();

  /// Exchanges averages and buffers with those of the module, for example to evaluate it with the averages: a
  /// second call exchanges them back. Throws as copy_to().
  void swap(Module& module);

  /// Copies averages and buffers into the module, which may be on another device, and discards what it has
  /// derived from its weights. Throws Error and changes nothing unless it has the same names, shapes and
  /// dtypes.
  void copy_to(Module& module) const;

  double decay() const { return decay_; }
  /// The state for a checkpoint: averages and buffers under their names in the module, with the axis order of
  /// Module::parameters(). They share this object's memory.
  NamedTensors state() const;
  /// Copies the values. Throws Error and changes nothing unless names, shapes and dtypes are those of
  /// state().
  void load_state(const NamedTensors& state);

 private:
  const Module& module_;
  double decay_;
  NamedTensors parameters_, buffers_;  // the averages, in the order of the module
  std::unique_ptr<detail::TensorGroup> averaged_, copied_;
  Tensor hyperparameters_;
};

}  // namespace tandem
