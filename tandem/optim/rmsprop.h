// RMSprop (Hinton 2012) with PyTorch's formulas and defaults. Built from tensor operations: a model for own
// optimizers.
#pragma once

#include <cstddef>
#include <memory>

#include "tandem/optim/optimizer.h"
#include "tandem/optim/optimizer_options.h"

namespace tandem {

struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;  ///< of the running mean of squares
  double epsilon = 1e-8;
  double weight_decay = 0;  ///< added to the gradient (L2)
  double momentum = 0;
};

/// Divides each step by the root of a running mean of squared gradients. Its state is "<parameter>.square"
/// and, with momentum, "<parameter>.momentum".
class RMSprop : public Optimizer {
 public:
  /// Throws Error for options out of range, and as Optimizer does.
  explicit RMSprop(NamedTensors parameters, const RMSpropOptions& options = {});

  void update(std::size_t index, const Tensor& parameter, const Tensor& gradient) override;
  /// As given to the constructor.
  const RMSpropOptions& options() const { return options_; }

 private:
  RMSpropOptions options_;
};

/// RMSprop with the weight decay and the momentum of `options`: its factory in optimizers().
std::unique_ptr<Optimizer> make_rmsprop(NamedTensors parameters, const OptimizerOptions& options,
                                        double learning_rate);

}  // namespace tandem
