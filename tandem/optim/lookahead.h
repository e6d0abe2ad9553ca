// Lookahead (Zhang et al. 2019): slow weights follow those that the optimizer moves, which go on from the
// slow ones every few steps. It lets the learning rate be higher, and the last weights vary less.
#pragma once

#include <cstdint>
#include <memory>

#include "tandem/nn/module.h"

namespace tandem {
namespace detail {
class TensorGroup;
}

struct LookaheadOptions {
  std::int64_t every = 5;  ///< steps between updates
  /// After step t of T the slow weights keep the share decay^every · (t / T)³ of themselves: little at the
  /// start, most at the end.
  double decay = 0.95;
};

/// slow ← slow + f · (weight − slow), then weight ← slow, for every parameter and every buffer of its dtype,
/// such as the statistics of batch norms. Starts as a copy of the module, which must outlive it. Neither
/// copied nor moved; not thread-safe.
class Lookahead {
 public:
  /// Parameters must be contiguous, on one device, and all f32 or all f64; `every` at least 1, the decay 0 or
  /// more and less than 1. Otherwise throws Error.
  explicit Lookahead(Module& module, const LookaheadOptions& options = {});
  ~Lookahead();
  Lookahead(const Lookahead&) = delete;
  Lookahead& operator=(const Lookahead&) = delete;

  /// What belongs after step `step`, counted from 1, of `steps` in all: an update with f = 1 − share if the
  /// step is a multiple of `every`, and after the last step another one with f = 0, so that the module ends
  /// with the slow weights. Throws as update().
  void after_step(std::int64_t step, std::int64_t steps);
  /// One update with this f, two passes over all tensors. Nothing waits for the device. Throws Error if the
  /// module has been moved to another device, or has other parameters than before.
  void update(double f);

  /// Starts again with a copy of the module.
  void restart();

  const LookaheadOptions& options() const { return options_; }
  /// The slow weights for a checkpoint, under their names in the module, with the axis order of
  /// Module::parameters(). They share this object's memory.
  NamedTensors state() const { return slow_; }
  /// Copies the values. Throws Error and changes nothing unless names, shapes and dtypes are those of
  /// state().
  void load_state(const NamedTensors& state);

 private:
  NamedTensors fast() const;

  Module& module_;
  LookaheadOptions options_;
  NamedTensors slow_;
  std::unique_ptr<detail::TensorGroup> slow_group_, fast_group_;
  NamedTensors grouped_;  // the module's tensors that fast_group_ writes
  Tensor hyperparameters_;
};

}  // namespace tandem
