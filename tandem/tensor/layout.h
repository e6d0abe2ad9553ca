// How several tensors of one shape lie in memory, with axes that can be walked as one merged into one:
// contiguous operands, whatever their rank, become a single run. Kernels iterate over this instead of over
// shapes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "tandem/core/shape.h"

namespace tandem {

template <int operands>
struct Layout {
  int rank = 1;  // at least one axis
  std::int64_t sizes[max_rank] = {1};
  std::int64_t strides[operands][max_rank] = {};
  std::int64_t numel = 1;

  // True when the operand's elements follow each other in the order of iteration.
  bool is_dense(int operand) const { return rank == 1 && (strides[operand][0] == 1 || sizes[0] <= 1); }
  bool all_dense() const {
    bool dense = true;
    for (int k = 0; k < operands; ++k) dense = dense && is_dense(k);
    return dense;
  }

  // Where element `index` (in row-major order) of each operand lies.
  constexpr std::array<std::int64_t, operands> offsets(std::int64_t index) const {
    std::array<std::int64_t, operands> result{};
    for (int axis = rank - 1; axis >= 0; --axis) {
      const std::int64_t next = axis > 0 ? index / sizes[axis] : 0;
      const std::int64_t coordinate = index - next * sizes[axis];
      for (int k = 0; k < operands; ++k) result[k] += coordinate * strides[k][axis];
      index = next;
    }
    return result;
  }
};

template <int operands>
Layout<operands> make_layout(const Shape& shape, const std::array<Dims, operands>& strides) {
  Layout<operands> layout;
  layout.numel = shape.numel();
  layout.rank = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    const int last = layout.rank - 1;
    bool merges = layout.rank > 0;
    for (int k = 0; k < operands && merges; ++k)
      merges = layout.strides[k][last] == strides[k][axis] * shape[axis];
    if (!merges) ++layout.rank;
    const int place = layout.rank - 1;
    layout.sizes[place] = merges ? layout.sizes[place] * shape[axis] : shape[axis];
    for (int k = 0; k < operands; ++k) layout.strides[k][place] = strides[k][axis];
  }
  if (layout.rank == 0) {
    layout.rank = 1;
    layout.sizes[0] = 1;
    for (int k = 0; k < operands; ++k) layout.strides[k][0] = 1;
  }
  return layout;
}

// Calls f(offsets, count) for runs along the last axis that together cover elements [begin, end).
template <int operands, class F>
[[gnu::always_inline]] inline void for_each_run(const Layout<operands>& layout, std::int64_t begin,
                                                std::int64_t end, F&& f) {
  const int last = layout.rank - 1;
  const std::int64_t width = layout.sizes[last];
  while (begin < end) {
    const std::int64_t count = std::min(end - begin, width - begin % width);
    f(layout.offsets(begin), count);
    begin += count;
  }
}

}  // namespace tandem
