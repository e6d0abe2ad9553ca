// Convolution in bf16 or u8 · s8 on the CPU, as a product of blocks (block_product.h) whose rows are the
// windows of output pixels. Rows are read from the images where they lie there with a constant stride, else
// from a few gathered ones; the matrix of all windows never exists. Bits do not depend on the number of
// threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/ops/block_epilogue.h"
#include "tandem/ops/block_product.h"
#include "tandem/ops/conv/conv2d_kernel.h"

namespace tandem::detail {

// The packed weight of all groups: its size, and the packing of (out, kernel y, kernel x, channels / groups).
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
