// Updates all parameters of a network in one parallel loop or one kernel launch. The hyperparameters that
// change from step to step lie in device memory, so that a captured update can be replayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tandem/device/stream.h"
#include "tandem/optim/update_rule.h"
#include "tandem/tensor/tensor.h"

namespace tandem::detail {

// Addresses of one parameter and its optimizer states; unused states are null.
struct UpdateSlot {
  std::byte* weight;
  std::byte* states[2];
  std::int64_t count;
};

// A piece of a slot that one thread block updates.
struct UpdateChunk {
  std::int32_t slot;
  std::int32_t index;  // within the slot
};
inline constexpr std::int64_t update_chunk = 1024;  // elements per chunk

struct UpdateTable {
  std::vector<UpdateSlot> slots;
  std::vector<std::int64_t> first_chunk;  // of each slot; the last entry is the total
  Tensor device_slots;                    // CUDA only: the slots as bytes
  Tensor device_chunks;                   // CUDA only: all UpdateChunks as bytes
};

UpdateTable make_update_table(std::vector<UpdateSlot> slots, Device device);

inline constexpr std::int64_t step_hyperparameter_count = sizeof(StepHyperparameters<float>) / sizeof(float);

// Writes the StepHyperparameters of a step (counted from 1) to `hyperparameters`, which holds
// step_hyperparameter_count elements of the dtype.
template <Backend B>
void write_hyperparameters_kernel(const OptimizerOptions& options, DType dtype, double learning_rate,
                                  std::int64_t step, std::byte* hyperparameters, StreamView stream);

// Rules that no OptimizerOptions select. The source of a weight takes the place of its gradient.
enum class OtherRule {
  adaptive,           // sgd; every slot has its own hyperparameters, one after another
  adaptive_momentum,  // the same with momentum, and with the learning rate in the velocity
  average,            // moves the weight towards its source, by the fraction `rate`
  copy,               // the weight becomes its source
  scale,              // the weight becomes `rate` times its source
};

// `gradients` holds the address of a contiguous gradient for each slot; a null one leaves its slot unchanged.
// Slot i has the hyperparameters number i · hyperparameter_step. f32 and f64.
template <Backend B>
void fused_update_kernel(const OptimizerOptions& options, DType dtype, const UpdateTable& table,
                         std::span<const std::byte* const> gradients, const std::byte* hyperparameters,
                         int hyperparameter_step, StreamView stream);
template <Backend B>
void fused_update_kernel(OtherRule rule, DType dtype, const UpdateTable& table,
                         std::span<const std::byte* const> gradients, const std::byte* hyperparameters,
                         StreamView stream);

struct AdaptiveMomentumRule {
  static constexpr int states = 1;
  template <class V, class T>
  [[gnu::always_inline]] constexpr void operator()(V& w, V g, V& velocity, V&,
                                                   const StepHyperparameters<T>& n) const {
    velocity = n.momentum * velocity + n.rate * (g + n.decay * w);
    w = w - velocity;
  }
};
struct AverageRule {
  static constexpr int states = 0;
  template <class V, class T>
  [[gnu::always_inline]] constexpr void operator()(V& w, V source, V&, V&,
                                                   const StepHyperparameters<T>& n) const {
    w = w + n.rate * (source - w);
  }
};
struct CopyRule {
  static constexpr int states = 0;
  template <class V, class T>
  [[gnu::always_inline]] constexpr void operator()(V& w, V source, V&, V&,
                                                   const StepHyperparameters<T>&) const {
    w = source;
  }
};

struct ScaleRule {
  static constexpr int states = 0;
  template <class V, class T>
  [[gnu::always_inline]] constexpr void operator()(V& w, V source, V&, V&,
                                                   const StepHyperparameters<T>& n) const {
    w = n.rate * source;
  }
};

// Calls f with the rule and the number of hyperparameter sets from one slot to the next.
template <class F>
constexpr void on_other_rule(OtherRule rule, F&& f) {
  switch (rule) {
    case OtherRule::adaptive:
      return f(SgdRule{}, 1);
    case OtherRule::adaptive_momentum:
      return f(AdaptiveMomentumRule{}, 1);
    case OtherRule::average:
      return f(AverageRule{}, 0);
    case OtherRule::copy:
      return f(CopyRule{}, 0);
    case OtherRule::scale:
      return f(ScaleRule{}, 0);
  }
}

}  // namespace tandem::detail
