// What follows a block of sums (block_product.h): scale, bias, residual and activation, then rounding to the
// dtype of the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tandem/core/dtype.h"
#include "tandem/core/matrix_isa.h"
#include "tandem/ops/fused_activation.h"

namespace tandem::detail {

// Values that are stored as u8: scale · (stored − zero).
struct Quantization {
  float scale = 1;
  float zero = 0;  // a whole number from 0 to 255
};

// activation(scale · sum + bias + residual). Pointers may be null.
struct BlockEpilogue {
  MatrixType type = MatrixType::bf16;  // of the factors: sums are f32 or s32
  DType dtype = DType::bf16;           // of the result and the residual: bf16, f32 or u8
  const float* scale = nullptr;        // per column
  const float* bias = nullptr;         // per column
  const std::byte* residual = nullptr;
  FusedActivation activation = FusedActivation::none;  // SiLU and hardswish without a residual only
  Quantization result = {};                            // of u8
  Quantization residual_values = {};                   // of u8
  bool is_bounded = false;  // no u8 result is 2³¹ or more steps before it is clamped
};

// Rows of a block whose results are a constant distance apart. Element `offset` is column 0 of the first.
struct BlockRun {
  std::int64_t row, count, offset;
};

// A part of a row-major result: at most 32 columns, the first of which is also that of scale and bias.
struct BlockTarget {
  std::byte* result;
  std::int64_t row_stride;  // in elements
  std::span<const BlockRun> runs;
  std::int64_t first_column, columns;
};

// `sums` are rows of 32, and overwritten. With the vector instructions of `isa`.
void finish_block(MatrixIsa isa, const BlockEpilogue& epilogue, void* sums, const BlockTarget& target);

// Only for avx512 and amx.
void finish_block_x86(const BlockEpilogue& epilogue, const void* sums, const BlockTarget& target);
// Only on aarch64 and for whole panels of columns; elsewhere false, and nothing is done.
bool finish_block_arm(const BlockEpilogue& epilogue, const void* sums, const BlockTarget& target);

}  // namespace tandem::detail
