// Sums of squares over the chunks of an UpdateTable on the CPU, in f64 and in a fixed order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tandem/core/simd.h"
#include "tandem/ops/row_kernel.h"
#include "tandem/optim/fused_update.h"

namespace tandem::detail {

// The elements of a chunk.
struct ChunkRange {
  std::size_t slot;
  std::int64_t begin, count;
};

// The chunk number `index` of all slots.
inline ChunkRange chunk_at(const UpdateTable& table, std::int64_t index) {
  const auto after = std::ranges::upper_bound(table.first_chunk, index);
  const auto slot = static_cast<std::size_t>(after - table.first_chunk.begin()) - 1;
  const std::int64_t begin = (index - table.first_chunk[slot]) * update_chunk;
  return {slot, begin, std::min(update_chunk, table.slots[slot].count - begin)};
}

template <class T>
double sum_of_squares(const T* values, std::int64_t count) {
  using namespace row_ops;
  double squares[block_size], sum = 0;
  with_simd([&]<std::size_t>() __attribute__((always_inline)) {
    for_each_block(
        count, [&](std::int64_t begin, std::int64_t size) __attribute__((always_inline)) {
          for (std::int64_t i = 0; i < size; ++i) {
            const auto value = static_cast<double>(values[begin + i]);
            squares[i] = value * value;
          }
          sum += reduce_block(squares, size, 0.0, Sum{});
        });
  });
  return sum;
}

}  // namespace tandem::detail
