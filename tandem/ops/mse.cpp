#include "tandem/ops/mse.h"

#include "tandem/core/check.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/reduce.h"
#include "tandem/ops/shard_scope.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

// The elements of a tensor of the whole batch, of which this part has `shape`.
std::int64_t elements_of_batch(const ShardPart* part, const Shape& shape) {
  if (!part) return shape.numel();
  check(shape.rank() > 0, "[mse_loss] expected the rows of a batch in axis 0, got shape []");
  std::int64_t count = detail::batch_size_of(part, shape[0], "mse_loss");
  for (int axis = 1; axis < shape.rank(); ++axis) count *= shape[axis];
  return count;
}

}  // namespace

Tensor mse_loss(const Tensor& prediction, const Tensor& target) {
  common_device("mse_loss", {&prediction, &target});
  const DType dtype = common_dtype("mse_loss", {&prediction, &target});
  check(is_floating(dtype), "[mse_loss] expected a floating dtype, got {}", name_of(dtype));
  check(prediction.shape() == target.shape(),
        "[mse_loss] expected two tensors of the same shape, got {} and {}", prediction.shape().to_string(),
        target.shape().to_string());
  const ShardPart* const part = detail::shard_part();
  check(part || prediction.numel() > 0, "[mse_loss] expected at least one element, got shape {}",
        prediction.shape().to_string());
  const bool needs_prediction_grad = wants_grad(prediction), needs_target_grad = wants_grad(target);
  // The gradient needs only the difference, so the loss is recorded as one tape node.
  const Tensor difference = subtract(prediction.detach(), target.detach());
  const double count = static_cast<double>(elements_of_batch(part, difference.shape()));
  Tensor loss = multiply(sum(multiply(difference, difference)), 1.0 / count);
  if (needs_prediction_grad || needs_target_grad)
    record(loss, "mse_loss", {&prediction, &target}, [=](const Tensor& g) {
      detail::check_scope(part, "mse_loss");
      const Tensor gradient = multiply(difference, multiply(g, 2.0 / count));
      return Gradients{needs_prediction_grad ? gradient : Tensor(),
                       needs_target_grad ? negate(gradient) : Tensor()};
    });
  return loss;
}

}  // namespace tandem
