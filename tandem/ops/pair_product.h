// Products of low precision for CPUs whose instructions multiply two rows by two columns (bfmmla and usmmla
// of aarch64): 24 rows × a pair of panels (block_product.h). The rows lie in pairs, eight bytes of one beside
// the same eight bytes of the next, so that nothing is rearranged between the products. The order of every
// sum is that of block_product.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/ops/block_product.h"

namespace tandem::detail {

inline constexpr std::int64_t tile_pairs = 3;    // rows of a register tile
inline constexpr std::int64_t block_pairs = 12;  // rows of a product

struct PairProduct {
  const std::byte* rows = nullptr;
  const std::int64_t* pairs = nullptr;    // block_pairs offsets from `rows`, in bytes
  const std::int64_t* offsets = nullptr;  // of every step in one row: twice as many bytes in a pair
  std::int64_t steps = 0;                 // at least 1
  const std::byte* panels = nullptr;
  int used_tiles = 4;   // 1 to 4 times tile_pairs are computed, and must be readable
  int panel_count = 2;  // 1 or 2
  // The sums of the first rows of all pairs come before those of the second rows: rows 0 … 11 and 12 … 23.
  bool splits_pairs = false;
  void* sums = nullptr;  // 24 × 32 of float or std::int32_t, aligned to 16 bytes
};

// Where the loads of the inner loop are: directly before the products that read them, or at least six
// products earlier. The bits are the same.
enum class LoadSchedule : std::uint8_t { adjacent, early };

// Null without such instructions. Without a schedule, the one that is faster on this CPU: the first call
// measures both.
using PairKernel = void (*)(const PairProduct& product);
PairKernel pair_kernel(MatrixType type, MatrixIsa isa);
PairKernel pair_kernel(MatrixType type, MatrixIsa isa, LoadSchedule schedule);

// Writes `bytes` bytes of rows as pairs, twice as many: each eight bytes, then those `distance` bytes behind
// them. `bytes` is a multiple of 16; bytes + distance bytes are read.
void make_pairs(std::byte* pairs, const std::byte* rows, std::int64_t bytes, std::int64_t distance);

}  // namespace tandem::detail
