#include "tandem/ops/flatten.h"

namespace tandem {

Tensor flatten(const Tensor& x, int first_axis) {
  common_device("flatten", {&x});
  first_axis = normalize_axis(first_axis, x.rank(), "flatten");
  Dims sizes = Dims::filled(first_axis + 1, 1);
  for (int axis = 0; axis < x.rank(); ++axis) sizes[axis < first_axis ? axis : first_axis] *= x.size(axis);
  return x.reshape(sizes);
}

}  // namespace tandem
