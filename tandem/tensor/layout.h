// The memory layout of several operands of the same shape, with adjacent axes merged where all operands allow
// it: contiguous operands of any rank become one axis. Kernels iterate over this instead of over shapes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "tandem/core/shape.h"

namespace tandem::detail {

template <int operands>
struct Layout {
  int rank = 1;  // at least 1
  std::int64_t sizes[max_rank] = {1};
  std::int64_t strides[operands][max_rank] = {};
  std::int64_t numel = 1;

  // True when the operand's elements are consecutive in iteration order.
  bool is_dense(int operand) const { return rank == 1 && (strides[operand][0] == 1 || sizes[0] <= 1); }
  bool all_dense() const {
    bool dense = true;
    for (int k = 0; k < operands; ++k) dense = dense && is_dense(k);
    return dense;
  }

  // The offset of element `index` (in row-major order) in each operand.
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
    bool mergeable = layout.rank > 0;
    for (int k = 0; k < operands && mergeable; ++k)
      mergeable = layout.strides[k][last] == strides[k][axis] * shape[axis];
    if (!mergeable) ++layout.rank;
    const int current = layout.rank - 1;
    layout.sizes[current] = mergeable ? layout.sizes[current] * shape[axis] : shape[axis];
    for (int k = 0; k < operands; ++k) layout.strides[k][current] = strides[k][axis];
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

}  // namespace tandem::detail
