// The resize that loader workers call for every image: it writes into memory of the caller and keeps its
// tables and buffers between calls. Columns are resampled first and rounded to 8 bits, then rows;
// resize_weights.h defines the weights.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/image/image.h"
#include "tandem/image/resize.h"

namespace tandem::detail {

// The taps and fixed-point weights of every output pixel along one side.
struct ResizeTable {
  ResizeFilter filter = ResizeFilter::bilinear;
  bool mirrored = false;  // the last output pixel first
  int64_t in = 0, out = 0, stride = 0;
  std::vector<int64_t> first, count;  // one entry per output pixel
  std::vector<int32_t> weights;       // `stride` per output pixel, in the layout of resize_sums.h
  std::vector<double> raw;            // the weights of one output pixel while the table is filled
};

// Buffers kept from one call to the next, and tables, which are reused while the sizes stay the same. One
// instance per thread.
struct ResizeScratch {
  ResizeTable columns, rows;
  std::vector<uint8_t> transposed;   // a block of input rows, transposed, before and after resampling
  std::vector<uint8_t> resampled;    // input rows resampled to the output's width
  std::vector<const uint8_t*> taps;  // the resampled rows that one output row reads
};

// Writes height x width pixels with the input's channels (1 or 3) to `out`, contiguously. `mirrored` then
// flips the result from left to right.
void resize_into(const ImageView& in, int64_t height, int64_t width, uint8_t* out, ResizeFilter filter,
                 ResizeScratch& scratch, bool mirrored = false);

}  // namespace tandem::detail
