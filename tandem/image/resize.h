// Resizing as Pillow's Image.resize does it: antialiased bilinear and bicubic, equal to the byte. Columns
// first, rounded to 8 bits, then rows; resize_weights.h defines the weights.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/image/image.h"
#include "tandem/image/resize_weights.h"

namespace tandem {

// The taps and fixed-point weights of every output pixel along one side.
struct ResizeTable {
  ResizeFilter filter = ResizeFilter::bilinear;
  bool mirrored = false;  // the last output pixel first
  int64_t in = 0, out = 0, stride = 0;
  std::vector<int64_t> first, count;  // an entry an output pixel
  std::vector<int32_t> weights;       // `stride` an output pixel, as resize_sums.h takes them
  std::vector<double> raw;            // of one output pixel, while the table is made
};

// Memory kept from one call to the next (and the tables, where the sizes are the same); one for each thread.
struct ResizeScratch {
  ResizeTable columns, rows;
  std::vector<uint8_t> turned, narrowed;  // input rows as columns; input rows of the output's width
  std::vector<const uint8_t*> taps;       // the narrowed rows that one output row reads
};

// Writes height x width pixels of the input's channels (1 or 3) to `out`, without gaps; `mirrored`: then
// flipped from left to right.
void resize(const ImageView& in, int64_t height, int64_t width, uint8_t* out, ResizeFilter filter,
            ResizeScratch& scratch, bool mirrored = false);

Image resize(const ImageView& in, int64_t height, int64_t width,
             ResizeFilter filter = ResizeFilter::bilinear);

}  // namespace tandem
