// Convolution in bf16 or u8 · s8 on the CPU, as a product of blocks (block_product.h) whose rows are the
// windows of output pixels. They are read from padded copies of a few lines at a time (window_band.h), those
// of 1×1 windows from the images; the matrix of all windows never exists. Bits do not depend on the number of
// threads. Where channels do not fill a step of the product, a window may also read the pixels after it, with
// weights of zero: a NaN there spoils it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/ops/block_epilogue.h"
#include "tandem/ops/block_product.h"
#include "tandem/ops/conv/conv2d_kernel.h"

namespace tandem::detail {

// Not for groups, nor for padding that is wider than the window.
bool is_block_conv_applicable(const Conv2dPlan& plan);
// Whether bf16 convolutions of this plan use blocks: where the CPU has instructions for them.
inline bool uses_block_conv(const Conv2dPlan& plan) {
  return plan.dtype == DType::bf16 && is_block_conv_applicable(plan) &&
         matrix_isa(MatrixType::bf16) != MatrixIsa::plain;
}

// The size of the packed weight, and the packing of (out, kernel y, kernel x, channels).
std::int64_t block_conv_weight_bytes(const Conv2dPlan& plan, MatrixType type);
void pack_block_conv_weight(const Conv2dPlan& plan, MatrixType type, std::byte* packed,
                            const std::byte* weight);

struct BlockConv {
  Conv2dPlan plan;  // its dtype does not matter: epilogue.type is that of the factors
  MatrixIsa isa = MatrixIsa::plain;
  const std::byte* x = nullptr;
  const std::byte* packed = nullptr;
  std::byte* y = nullptr;
  BlockEpilogue epilogue = {};
  std::uint8_t padding_value = 0;  // of u8 images: the stored zero
};
void block_conv2d(const BlockConv& conv);

}  // namespace tandem::detail
