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
  check(prediction.shape() == target.shape(),
        "[mse_loss] expected two tensors of the same shape, got {} and {}", prediction.shape().to_string(),
        target.shape().to_string());
  check(prediction.numel() > 0, "[mse_loss] expected at least one element, got shape {}",
        prediction.shape().to_string());
  const bool needs_prediction_grad = wants_grad(prediction), needs_target_grad = wants_grad(target);
  // The gradient needs only the difference, so the loss is recorded as one tape node.
  const Tensor difference = subtract(prediction.detach(), target.detach());
  Tensor loss = mean(multiply(difference, difference));
  if (needs_prediction_grad || needs_target_grad)
    record(loss, "mse_loss", {&prediction, &target}, [=](const Tensor& g) {
      const double scale = 2.0 / static_cast<double>(difference.numel());
      const Tensor gradient = multiply(difference, multiply(g, scale));
      return Gradients{needs_prediction_grad ? gradient : Tensor(),
                       needs_target_grad ? negate(gradient) : Tensor()};
    });
  return loss;
}

}  // namespace tandem
