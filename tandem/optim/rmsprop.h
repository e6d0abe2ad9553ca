// RMSprop (Hinton 2012) with PyTorch's formulas and defaults. Built from tensor operations: a model for own
// optimizers.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/unary.h"
#include "tandem/optim/optimizer.h"
#include "tandem/optim/optimizer_options.h"
#include "tandem/tensor/copy.h"

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
  explicit RMSprop(NamedTensors parameters, const RMSpropOptions& options = {})
      : Optimizer(std::move(parameters), options.lr), options_(options) {
    check(options.alpha >= 0 && options.alpha < 1 && options.momentum >= 0 && options.momentum < 1,
          "[rmsprop] expected alpha and momentum of 0 or more and less than 1, got {} and {}", options.alpha,
          options.momentum);
    check(options.epsilon >= 0 && options.weight_decay >= 0,
          "[rmsprop] expected an epsilon and a weight decay of 0 or more, got {} and {}", options.epsilon,
          options.weight_decay);
    for (const auto& [name, parameter] : this->parameters()) {
      const auto zero = [&, &tensor = parameter] {
        return zeros(tensor.shape(), tensor.dtype(), tensor.device());
      };
      add_state(name + ".square", zero());
      if (options.momentum > 0) add_state(name + ".momentum", zero());
    }
  }

  void update(std::size_t index, const Tensor& parameter, const Tensor& gradient) override {
    const Tensor weight = parameter.detach();
    Tensor g = gradient;
    if (options_.weight_decay > 0) g = add(g, multiply(weight, options_.weight_decay));
    const bool has_momentum = options_.momentum > 0;
    const Tensor& square_mean = state_tensor(has_momentum ? 2 * index : index);
    copy_into(square_mean,
              add(multiply(square_mean, options_.alpha), multiply(square(g), 1 - options_.alpha)));
    Tensor direction = divide(g, add(sqrt(square_mean), options_.epsilon));
    if (has_momentum) {
      const Tensor& velocity = state_tensor(2 * index + 1);
      copy_into(velocity, add(multiply(velocity, options_.momentum), direction));
      direction = velocity;
    }
    copy_into(weight, subtract(weight, multiply(direction, learning_rate())));
  }

  const RMSpropOptions& options() const { return options_; }

 private:
  RMSpropOptions options_;
};

/// RMSprop with the weight decay and the momentum of `options`, for the registry.
inline std::unique_ptr<Optimizer> make_rmsprop(NamedTensors parameters, const OptimizerOptions& options,
                                               double learning_rate) {
  return std::make_unique<RMSprop>(std::move(parameters), RMSpropOptions{.lr = learning_rate,
                                                                         .weight_decay = options.weight_decay,
                                                                         .momentum = options.momentum});
}

}  // namespace tandem
