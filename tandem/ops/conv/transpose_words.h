// Transposes matrices of 16-bit words, for the gradients of convolutions in bf16.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tandem/ops/product_tile.h"

namespace tandem::detail {

using Word = std::uint16_t;  // the bits of a bf16

// A matrix of words that is transposed: rows are `stride` words apart.
struct Matrix {
  const Word* data;
  std::int64_t stride;
  std::int64_t rows, columns;
};

// Writes columns as rows, `stride` words apart, in tiles of 8×8 words.
[[gnu::always_inline]] inline void transpose(const Matrix& from, Word* to, std::int64_t stride) {
  for (std::int64_t c = 0; c < from.columns; c += 8)
    for (std::int64_t r = 0; r < from.rows; r += 8) {
      using Row = Vector<Word, 16>;
      Row tile[8] = {};
      const std::int64_t rows = std::min<std::int64_t>(8, from.rows - r),
                         columns = std::min<std::int64_t>(8, from.columns - c);
      const Word* const source = from.data + r * from.stride + c;
      Word* const target = to + c * stride + r;
      const bool whole = rows == 8 && columns == 8;
      if (whole)
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) std::memcpy(&tile[i], source + i * from.stride, 16);
      else
        for (std::int64_t i = 0; i < rows; ++i)
          std::memcpy(&tile[i], source + i * from.stride, static_cast<std::size_t>(columns) * sizeof(Word));
      transpose_square<8>(tile);
      if (whole)
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) std::memcpy(target + i * stride, &tile[i], 16);
      else
        for (std::int64_t i = 0; i < columns; ++i)
          std::memcpy(target + i * stride, &tile[i], static_cast<std::size_t>(rows) * sizeof(Word));
    }
}

}  // namespace tandem::detail
