// What the kernels of depthwise convolution have in common: the sums of an output or of an input gradient as
// passes over grids of pixels, and the rows of such a pass in f32.
#pragma once

#include <cstdint>

#include "tandem/core/index_range.h"
#include "tandem/core/recycling_allocator.h"
#include "tandem/ops/conv/conv2d_kernel.h"
#include "tandem/ops/conv/im2col.h"
#include "tandem/ops/product_tile.h"

namespace tandem::detail {

// A sum over taps at every pixel of a grid. Pixel (y, x) of the grid reads the pixels step · (y, x) + offset
// of the source and is pixel first + target_step · (y, x) of the target.
struct DepthwisePass {
  std::int64_t images;
  std::int64_t channels;
  std::int64_t weight_channels;  // from one tap's weights to the next
  YX source;
  YX target;
  YX grid;
  YX step;
  YX first;
  YX target_step;
  RecycledVector<Tap> taps;

  // The pixel of the target that pixel (y, x) of the grid is.
  [[gnu::always_inline]] std::int64_t target_pixel(std::int64_t image, std::int64_t y, std::int64_t x) const {
    return (image * target.y + first.y + target_step.y * y) * target.x + first.x + target_step.x * x;
  }
};

DepthwisePass forward_pass(const Conv2dPlan& plan);
// Together for all pixels of x: those at the same offset from a multiple of the stride are under the same
// taps.
RecycledVector<DepthwisePass> input_gradient_passes(const Conv2dPlan& plan);

// Channels that one thread computes at a time: their weights and rows of the source fit the L1 cache.
template <class T>
inline constexpr std::int64_t chunk_channels = 256 / std::int64_t{sizeof(T)};

// The taps that lie inside the image at some pixel, as offsets from that pixel's first tap position.
struct ValidTaps {
  RecycledVector<std::int64_t> source;  // elements
  RecycledVector<std::int64_t> weight;  // elements
  RecycledVector<std::int64_t> column;  // pixels

  void clear() {
    source.clear();
    weight.clear();
    column.clear();
  }
  void add(std::int64_t source_offset, std::int64_t weight_offset, std::int64_t column_offset) {
    source.push_back(source_offset);
    weight.push_back(weight_offset);
    column.push_back(column_offset);
  }
};

// Of the row and of the pixel that a thread computes.
struct RowTaps {
  ValidTaps row;
  ValidTaps pixel;
};

// Rows of the grid, counted through all chunks of channels of all images, on this thread.
void compute_depthwise_rows(const DepthwisePass& pass, float* to, const float* from, const float* packed,
                            const RowEpilogue<float>& epilogue, IndexRange rows, RowTaps& taps);

}  // namespace tandem::detail
