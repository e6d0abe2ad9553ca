// Convolution in bf16 or u8 · s8 on the CPU, as a product of blocks (block_product.h) whose rows are the
// windows of output pixels. They are read from padded copies of a few lines at a time (window_band.h), those
// of 1×1 windows from the images; the matrix of all windows never exists. Bits do not depend on the number of
// threads. Where channels do not fill a step of the product, a window may also read the pixels after it, with
// weights of zero: a NaN there spoils it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <variant>

#include "tandem/core/index_range.h"
#include "tandem/ops/block_epilogue.h"
#include "tandem/ops/block_product.h"
#include "tandem/ops/conv/conv2d_kernel.h"

namespace tandem::detail {

// Whether the convolution of this plan in bf16 uses blocks: where the CPU has instructions for them.
inline bool uses_block_conv(const Conv2dPlan& plan) {
  return plan.dtype == DType::bf16 && plan.groups == 1 && matrix_isa(MatrixType::bf16) != MatrixIsa::plain;
}

// The size of the packed weight, and the packing of (out, kernel y, kernel x, channels).
std::int64_t block_conv_weight_bytes(const Conv2dPlan& plan, MatrixType type);
void pack_block_conv_weight(const Conv2dPlan& plan, MatrixType type, std::byte* packed,
                            const std::byte* weight);

// The pixels of larger images that are written: first + step · (y, x).
struct OutputGrid {
  YX size = {0, 0};  // 0: the plan's output
  YX first = {0, 0};
  YX step = {1, 1};

  bool is_dense() const { return size == YX{0, 0}; }
  std::int64_t pixel(const Conv2dPlan& plan, std::int64_t image, std::int64_t y, std::int64_t x) const {
    const YX whole = is_dense() ? plan.out : size;
    return (image * whole.y + first.y + y * step.y) * whole.x + first.x + x * step.x;
  }
};

struct BlockConv {
  Conv2dPlan plan;  // its dtype does not matter: epilogue.type is that of the factors
  MatrixIsa isa = MatrixIsa::plain;
  const std::byte* x = nullptr;
  const std::byte* packed = nullptr;
  std::byte* y = nullptr;
  BlockEpilogue epilogue = {};
  std::uint8_t padding_value = 0;  // of u8 images: the stored zero
  OutputGrid grid = {};
};
void block_conv2d(const BlockConv& conv);

// Work on lines of images that is no convolution: run(lines, scratch) for any of images · lines, one image
// after another. It must not throw.
struct ImageLines {
  std::int64_t images, lines;
  std::int64_t scratch_bytes = 0;
  std::function<void(IndexRange lines, std::byte* scratch)> run;
};

// A stage of a chain, with the numbers of those before it whose results are its images and its residual, if
// any are. Lines need the image of which they are.
struct ChainStage {
  std::variant<BlockConv, ImageLines> work;
  std::optional<std::size_t> input = {}, residual = {};
};
// Computes stages with the same number of images in their order, but without waiting for all threads after
// each: a part begins as soon as the images that it reads are complete. A result may overwrite what stages
// two or more places before it read.
void block_conv_chain(std::span<const ChainStage> chain);

// The gradients in bf16, for windows without dilation. The input's is a convolution of dy with the flipped
// weight (one per remainder modulo the stride); the weight's, in f32, is a product over all pixels.
bool has_block_gradients(const Conv2dPlan& plan);
void block_input_gradient(const Conv2dPlan& plan, MatrixIsa isa, std::byte* dx, const std::byte* dy,
                          const std::byte* weight);
void block_weight_gradient(const Conv2dPlan& plan, MatrixIsa isa, float* dweight, const std::byte* dy,
                           const std::byte* x);

}  // namespace tandem::detail
