// Products of low precision on the CPU: a block of up to 32 rows × 32 columns of bf16 · bf16 in f32, or of
// u8 · s8 in s32, along the whole inner dimension, with the instructions of matrix_isa.h. The inner dimension
// advances in steps of 64 bytes. Rows are read where they lie, so that a convolution need not copy them; the
// right factor is packed. The order of every sum is the same in every block: bits do not depend on how the
// work is split.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tandem/core/matrix_isa.h"
#include "tandem/ops/product_tile.h"

namespace tandem::detail {

inline constexpr std::int64_t block_rows = 32;     // two tiles of 16
inline constexpr std::int64_t block_columns = 32;  // two panels
inline constexpr std::int64_t panel_width = 16;    // columns of a packed panel
inline constexpr std::int64_t step_bytes = 64;
inline constexpr std::int64_t panel_step_bytes = panel_width * step_bytes;

constexpr std::int64_t element_size(MatrixType type) {
  return type == MatrixType::bf16 ? 2 : 1;
}
constexpr std::int64_t step_elements(MatrixType type) {
  return step_bytes / element_size(type);
}
// Consecutive elements of one column in a packed panel: what one instruction adds to one sum.
constexpr std::int64_t group_elements(MatrixType type) {
#if defined(__aarch64__)
  return 8 / element_size(type);
#else
  return 4 / element_size(type);
#endif
}

struct BlockProduct {
  const std::byte* rows = nullptr;
  std::int64_t row_stride = 0;            // in bytes
  const std::int64_t* offsets = nullptr;  // of every step from the beginning of a row, in bytes
  std::int64_t steps = 0;                 // at least 1
  const std::byte* panels = nullptr;      // [panel][step][group][column][element of the group]
  int row_tiles = 2;                      // 1 or 2: 16 or 32 rows, which all must be readable
  int panel_count = 2;                    // 1 or 2
  void* sums = nullptr;                   // 32 × 32 of float or std::int32_t, aligned to 64 bytes
};

// Kernels of one instruction set. begin() and end() enclose the products of one thread: the tiles of AMX are
// configured between them.
struct BlockKernel {
  void (*begin)();
  void (*multiply)(const BlockProduct& product);
  void (*end)();
};
const BlockKernel& block_kernel(MatrixType type, MatrixIsa isa);

// The tiles of this thread, from construction to destruction.
class BlockKernelScope {
 public:
  explicit BlockKernelScope(const BlockKernel& kernel) : kernel_(kernel) { kernel_.begin(); }
  ~BlockKernelScope() { kernel_.end(); }
  BlockKernelScope(const BlockKernelScope&) = delete;
  BlockKernelScope& operator=(const BlockKernelScope&) = delete;

 private:
  const BlockKernel& kernel_;
};

// The packed right factor of columns of `inner` elements.
struct PackedPanels {
  MatrixType type;
  std::int64_t columns;
  std::int64_t inner;

  std::int64_t steps() const { return ceil_div(inner, step_elements(type)); }
  std::int64_t panels() const { return ceil_div(columns, panel_width); }
  std::int64_t panel_bytes() const { return steps() * panel_step_bytes; }
  std::int64_t bytes() const { return panels() * panel_bytes(); }
};
// Where the columns to pack are: segment s of column j is `segment_elements` elements from data + j ·
// column_stride + s · segment_stride (bytes) on. The inner dimension has room for whole steps of every
// segment; the rest is filled with zeros.
struct PanelSource {
  const std::byte* data;
  std::int64_t column_stride;
  std::int64_t segment_stride;
  std::int64_t segment_elements;
};
void pack_panels(const PackedPanels& layout, std::byte* packed, const PanelSource& source);

// Of the instruction sets of one architecture; none elsewhere.
const BlockKernel* x86_block_kernel(MatrixType type, MatrixIsa isa);
const BlockKernel* arm_block_kernel(MatrixType type, MatrixIsa isa);

}  // namespace tandem::detail
