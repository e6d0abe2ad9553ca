#include "tandem/ops/block_product.h"

#include <cstring>

#include "tandem/core/check.h"
#include "tandem/core/dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"

namespace tandem::detail {
namespace {

// Sums of `rows` rows × `wide` vectors of columns that are column_stride bytes apart. Pairs of bf16 in 32-bit
// lanes (x86) widen by a shift or a mask.
template <std::size_t bytes, int rows, int wide>
[[gnu::always_inline]] inline void multiply_bf16_pairs(const BlockProduct& product, std::int64_t first_row,
                                                       const std::byte* columns, std::int64_t column_stride,
                                                       float* sums) {
  using Sums = Vector<float, bytes>;
  using Lanes = Vector<std::uint32_t, bytes>;
  constexpr int lanes = static_cast<int>(bytes / 4);
  const auto low_of = [](Lanes pairs) __attribute__((always_inline)) {
    return reinterpret_cast<Sums>(pairs << 16);
  };
  const auto high_of = [](Lanes pairs) __attribute__((always_inline)) {
    return reinterpret_cast<Sums>(pairs & 0xffff0000u);
  };
  const std::byte* const first = product.rows + first_row * product.row_stride;
  Sums acc[rows][wide] = {};
  for (std::int64_t s = 0; s < product.steps; ++s)
    for (std::int64_t g = 0; g < step_bytes / 4; ++g) {
      const std::byte* const from = columns + s * panel_step_bytes + g * 64;
      Sums low[wide], high[wide];
#pragma GCC unroll 2
      for (int v = 0; v < wide; ++v) {
        const Lanes pairs = *reinterpret_cast<const Lanes*>(from + v * column_stride);
        low[v] = low_of(pairs);
        high[v] = high_of(pairs);
      }
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        std::uint32_t pair;
        std::memcpy(&pair, first + r * product.row_stride + product.offsets[s] + g * 4, 4);
        const Lanes row = Lanes{} + pair;
        const Sums a = low_of(row), b = high_of(row);
#pragma GCC unroll 2
        for (int v = 0; v < wide; ++v) {
          acc[r][v] += a * low[v];
          acc[r][v] += b * high[v];
        }
      }
    }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < wide; ++v) *reinterpret_cast<Sums*>(sums + r * block_columns + v * lanes) = acc[r][v];
}

// As many sums at a time as registers hold: both panels with AVX-512, else the halves of one.
template <std::size_t bytes>
[[gnu::always_inline]] inline void multiply_bf16_pairs(const BlockProduct& product) {
  constexpr int rows = bytes == 64 ? 8 : 4;
  const std::int64_t panel_bytes = product.steps * panel_step_bytes;
  auto* const sums = static_cast<float*>(product.sums);
  for (std::int64_t r = 0; r < product.row_tiles * 16; r += rows) {
    float* const to = sums + r * block_columns;
    if constexpr (bytes == 64) {
      if (product.panel_count == 2)
        multiply_bf16_pairs<bytes, rows, 2>(product, r, product.panels, panel_bytes, to);
      else
        multiply_bf16_pairs<bytes, rows, 1>(product, r, product.panels, panel_bytes, to);
    } else {
      constexpr auto step = static_cast<std::int64_t>(bytes);
      for (std::int64_t p = 0; p < product.panel_count; ++p)
        for (std::int64_t at = 0; at < 64; at += 2 * step)
          multiply_bf16_pairs<bytes, rows, 2>(product, r, product.panels + p * panel_bytes + at, step,
                                              to + p * panel_width + at / 4);
    }
  }
}

constexpr int plain_rows = 4;

// For groups of four, as AArch64 has them.
[[gnu::always_inline]] inline void multiply_bf16_rows(const BlockProduct& product, std::int64_t first_row,
                                                      const std::byte* panel, float* sums) {
  constexpr std::int64_t group = group_elements(MatrixType::bf16), groups = 32 / group;
  for (int r = 0; r < plain_rows; ++r) {
    float acc[panel_width] = {};
    for (std::int64_t s = 0; s < product.steps; ++s)
      for (std::int64_t g = 0; g < groups; ++g) {
        BFloat16 row[group], column[panel_width * group];
        std::memcpy(row,
                    product.rows + (first_row + r) * product.row_stride + product.offsets[s] +
                        g * static_cast<std::int64_t>(sizeof(row)),
                    sizeof(row));
        std::memcpy(column, panel + s * panel_step_bytes + g * static_cast<std::int64_t>(sizeof(column)),
                    sizeof(column));
        for (std::int64_t j = 0; j < panel_width; ++j)
          for (std::int64_t k = 0; k < group; ++k)
            acc[j] += static_cast<float>(row[k]) * static_cast<float>(column[j * group + k]);
      }
    std::memcpy(sums + r * block_columns, acc, sizeof(acc));
  }
}

[[gnu::always_inline]] inline void multiply_int8_rows(const BlockProduct& product, std::int64_t first_row,
                                                      const std::byte* panel, std::int32_t* sums) {
  constexpr std::int64_t group = group_elements(MatrixType::int8), groups = 64 / group;
  for (int r = 0; r < plain_rows; ++r) {
    std::int32_t acc[panel_width] = {};
    const std::byte* const row = product.rows + (first_row + r) * product.row_stride;
    for (std::int64_t s = 0; s < product.steps; ++s)
      for (std::int64_t g = 0; g < groups; ++g) {
        const auto* const a = reinterpret_cast<const std::uint8_t*>(row + product.offsets[s] + g * group);
        const auto* const b =
            reinterpret_cast<const std::int8_t*>(panel + s * panel_step_bytes + g * group * panel_width);
        for (std::int64_t j = 0; j < panel_width; ++j)
          for (std::int64_t k = 0; k < group; ++k) acc[j] += a[k] * b[j * group + k];
      }
    std::memcpy(sums + r * block_columns, acc, sizeof(acc));
  }
}

template <MatrixType type>
void multiply_plain(const BlockProduct& product) {
  with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
    if constexpr (type == MatrixType::bf16 && group_elements(type) == 2)
      multiply_bf16_pairs<bytes>(product);
    else
      for (std::int64_t p = 0; p < product.panel_count; ++p)
        for (std::int64_t r = 0; r < product.row_tiles * 16; r += plain_rows) {
          const std::byte* const panel = product.panels + p * product.steps * panel_step_bytes;
          const std::int64_t at = r * block_columns + p * panel_width;
          if constexpr (type == MatrixType::bf16)
            multiply_bf16_rows(product, r, panel, static_cast<float*>(product.sums) + at);
          else
            multiply_int8_rows(product, r, panel, static_cast<std::int32_t*>(product.sums) + at);
        }
  });
}

// Step by step, so that the part of the panel that is written stays in the L1 cache.
template <MatrixType type>
void pack_panel(const PackedPanels& layout, std::byte* packed, const PanelSource& source,
                std::int64_t first) {
  constexpr std::int64_t group_bytes = group_elements(type) * element_size(type);
  const std::int64_t count = std::min(panel_width, layout.columns - first),
                     segment_bytes = source.segment_elements * element_size(type),
                     segment_steps = ceil_div(segment_bytes, step_bytes);
  if (count < panel_width || segment_bytes % step_bytes != 0)
    std::memset(packed, 0, static_cast<std::size_t>(layout.panel_bytes()));
  for (std::int64_t step = 0; step < layout.steps(); ++step, packed += panel_step_bytes) {
    const std::int64_t segment = step / segment_steps, at = step % segment_steps * step_bytes,
                       bytes = std::min(step_bytes, segment_bytes - at), whole = bytes / group_bytes;
    for (std::int64_t j = 0; j < count; ++j) {
      const std::byte* const from =
          source.data + (first + j) * source.column_stride + segment * source.segment_stride + at;
      std::byte* const to = packed + j * group_bytes;
      for (std::int64_t g = 0; g < whole; ++g)
        std::memcpy(to + g * group_bytes * panel_width, from + g * group_bytes, group_bytes);
      std::memcpy(to + whole * group_bytes * panel_width, from + whole * group_bytes,
                  static_cast<std::size_t>(bytes - whole * group_bytes));
    }
  }
}

}  // namespace

void pack_panels(const PackedPanels& layout, std::byte* packed, const PanelSource& source) {
  parallel_for(layout.panels(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t panel = begin; panel < end; ++panel) {
      std::byte* const to = packed + panel * layout.panel_bytes();
      if (layout.type == MatrixType::bf16)
        pack_panel<MatrixType::bf16>(layout, to, source, panel * panel_width);
      else
        pack_panel<MatrixType::int8>(layout, to, source, panel * panel_width);
    }
  });
}

const BlockKernel& block_kernel(MatrixType type, MatrixIsa isa) {
  static constexpr auto nothing = [] {};
  static const BlockKernel plain_bf16{nothing, multiply_plain<MatrixType::bf16>, nothing},
      plain_int8{nothing, multiply_plain<MatrixType::int8>, nothing};
  if (const BlockKernel* const kernel = x86_block_kernel(type, isa)) return *kernel;
  if (const BlockKernel* const kernel = arm_block_kernel(type, isa)) return *kernel;
  expect(isa == MatrixIsa::plain);
  return type == MatrixType::bf16 ? plain_bf16 : plain_int8;
}

}  // namespace tandem::detail
