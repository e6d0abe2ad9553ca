#include "tandem/optim/rmsprop.h"

#include <utility>

#include "tandem/core/check.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/unary.h"
#include "tandem/tensor/copy.h"

namespace tandem {

RMSprop::RMSprop(NamedTensors parameters, const RMSpropOptions& options)
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

void RMSprop::update(std::size_t index, const Tensor& parameter, const Tensor& gradient) {
  const Tensor weight = parameter.detach();
  Tensor g = gradient;
  if (options_.weight_decay > 0) g = add(g, multiply(weight, options_.weight_decay));
  const bool has_momentum = options_.momentum > 0;
  const Tensor& square_mean = state_tensor(has_momentum ? 2 * index : index);
  copy_into(square_mean, add(multiply(square_mean, options_.alpha), multiply(square(g), 1 - options_.alpha)));
  Tensor direction = divide(g, add(sqrt(square_mean), options_.epsilon));
  if (has_momentum) {
    const Tensor& velocity = state_tensor(2 * index + 1);
    copy_into(velocity, add(multiply(velocity, options_.momentum), direction));
    direction = velocity;
  }
  copy_into(weight, subtract(weight, multiply(direction, learning_rate())));
}

std::unique_ptr<Optimizer> make_rmsprop(NamedTensors parameters, const OptimizerOptions& options,
                                        double learning_rate) {
  return std::make_unique<RMSprop>(std::move(parameters), RMSpropOptions{.lr = learning_rate,
                                                                         .weight_decay = options.weight_decay,
                                                                         .momentum = options.momentum});
}

}  // namespace tandem
