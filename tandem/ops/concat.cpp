#include "tandem/ops/concat.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

// Checks the inputs and returns the shape of the result.
Shape concat_shape(std::span<const Tensor> tensors, int axis) {
  const Tensor& first = tensors.front();
  Dims sizes = first.shape();
  sizes[axis] = 0;
  for (const Tensor& tensor : tensors) {
    common_device("concat", {&first, &tensor});
    common_dtype("concat", {&first, &tensor});
    bool fits = tensor.rank() == first.rank();
    for (int i = 0; i < first.rank() && fits; ++i) fits = i == axis || tensor.shape()[i] == first.shape()[i];
    check(fits, "[concat] expected shapes that differ only along axis {}, got {} and {}", axis,
          first.shape().to_string(), tensor.shape().to_string());
    check(!__builtin_add_overflow(sizes[axis], tensor.shape()[axis], &sizes[axis]),
          "[concat] expected sizes along axis {} whose sum fits 63 bits, got more", axis);
  }
  return Shape(sizes);
}

}  // namespace

Tensor concat(std::span<const Tensor> tensors, int axis) {
  check(!tensors.empty(), "[concat] expected at least one tensor, got none");
  const Device device = common_device("concat", {&tensors.front()});
  check(tensors.front().rank() > 0, "[concat] expected tensors of at least one axis, got shape []");
  axis = normalize_axis(axis, tensors.front().rank(), "concat");
  Tensor out = Tensor::empty(concat_shape(tensors, axis), tensors.front().dtype(), device);

  std::vector<const Tensor*> inputs;
  std::vector<std::int64_t> offsets{0};
  for (const Tensor& tensor : tensors) {
    const std::int64_t begin = offsets.back(), end = begin + tensor.shape()[axis];
    copy_into(out.slice(axis, begin, end), tensor);
    inputs.push_back(&tensor);
    offsets.push_back(end);
  }
  if (std::any_of(tensors.begin(), tensors.end(), wants_grad)) {
    record(out, "concat", inputs, [axis, offsets = std::move(offsets)](const Tensor& g) {
      Gradients gradients;
      for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
        gradients.push_back(g.slice(axis, offsets[i], offsets[i + 1]));
      return gradients;
    });
    trace_option("axis", Dims(axis));
  }
  return out;
}

}  // namespace tandem
