#include "tandem/ops/mse.h"

#include "tandem/core/check.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/reduce.h"
#include "tandem/tensor/tape.h"

namespace tandem {

Tensor mse_loss(const Tensor& prediction, const Tensor& target) {
  common_device("mse_loss", {&prediction, &target});
  const DType dtype = common_dtype("mse_loss", {&prediction, &target});
  check(is_floating(dtype), "[mse_loss] expected a floating dtype, got {}", name_of(dtype));
  check(prediction.shape() == target.shape(), "[mse_loss] expected two tensors of one shape, got {} and {}",
        prediction.shape().to_string(), target.shape().to_string());
  check(prediction.numel() > 0, "[mse_loss] expected at least one element, got shape {}",
        prediction.shape().to_string());
  const bool of_prediction = wants_grad(prediction), of_target = wants_grad(target);
  // The difference is all the gradient needs, so the loss is recorded as one step.
  const Tensor difference = subtract(prediction.detach(), target.detach());
  Tensor loss = mean(multiply(difference, difference));
  if (of_prediction || of_target)
    record(loss, "mse_loss", {&prediction, &target}, [=](const Tensor& g) {
      const double twice = 2.0 / static_cast<double>(difference.numel());
      const Tensor gradient = multiply(difference, multiply(g, twice));
      return Gradients{of_prediction ? gradient : Tensor(), of_target ? negate(gradient) : Tensor()};
    });
  return loss;
}

}  // namespace tandem
