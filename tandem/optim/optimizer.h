// Optimisers: SGD (momentum, Nesterov, weight decay), Adam and AdamW, each one pass over all parameters.
// SGD(model.parameters(), {.lr = 0.1, .momentum = 0.9}).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/optim/fused_update.h"
#include "tandem/optim/update_rule.h"
#include "tandem/tensor/named_tensor.h"

namespace tandem {

class Optimizer {
 public:
  // Parameters are updated in place, through the handles given here: all f32 or all f64, dense, on one
  // device, with distinct names. In the steady state a step allocates nothing.
  Optimizer(NamedTensors parameters, const UpdateOptions& options, double learning_rate);

  // Updates every parameter that has a gradient; gradients are only read. The step count, which Adam's
  // corrections need, is one for all parameters.
  void step() {
    prepare_step();
    apply();
  }
  // The two halves of a step. prepare_step() counts it and hands its numbers to the device; apply() computes
  // and may be captured in a CUDA graph: each replay uses the numbers of the last prepare_step().
  void prepare_step();
  void apply();

  void zero_grad();

  double learning_rate() const { return learning_rate_; }
  void set_learning_rate(double rate);  // from the next prepare_step() on
  // Momentum of SGD, beta1 of the others. SGD without momentum has none to set.
  double momentum() const;
  void set_momentum(double momentum);
  std::int64_t step_count() const { return step_count_; }
  void set_step_count(std::int64_t count);  // for who has made steps without this object
  const UpdateOptions& options() const { return options_; }

  // What a checkpoint needs: "<parameter>.momentum" (SGD) or ".mean" and ".square", sharing memory, and
  // "step", a copy of the step count.
  NamedTensors state() const;
  // Error, and nothing changed, unless it is the state of such an optimiser for such parameters.
  void load_state(const NamedTensors& state);

 private:
  NamedTensors parameters_;
  UpdateOptions options_;
  double learning_rate_ = 0;
  std::int64_t step_count_ = 0;
  NamedTensors states_;  // state_count() for each parameter, in their order
  Tensor numbers_;       // UpdateNumbers, on the device
  UpdateTable table_;
  std::vector<Tensor> gradients_;  // of the step under way
  std::vector<const std::byte*> addresses_;
};

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
};

class SGD : public Optimizer {
 public:
  explicit SGD(NamedTensors parameters, const SgdOptions& options = {});
};

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;  // added to the gradient
};

class Adam : public Optimizer {
 public:
  explicit Adam(NamedTensors parameters, const AdamOptions& options = {});
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 1e-2;  // shrinks the weight
};

class AdamW : public Optimizer {
 public:
  explicit AdamW(NamedTensors parameters, const AdamWOptions& options = {});
};

}  // namespace tandem
