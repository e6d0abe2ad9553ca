#include "tandem/image/resize.h"

#include <algorithm>

#include "tandem/core/check.h"

namespace tandem {
namespace {

void fill_table(ResizeTable& table, ResizeFilter filter, int64_t in, int64_t out) {
  if (table.filter == filter && table.in == in && table.out == out) return;
  const int64_t stride = most_resize_taps(filter, in, out);
  table.in = 0;  // until it is whole
  table.first.resize(size_t(out));
  table.count.resize(size_t(out));
  table.weights.resize(size_t(out * stride));
  std::vector<double> raw(static_cast<size_t>(stride));
  for (int64_t i = 0; i < out; ++i) {
    const ResizeTaps taps = resize_taps(filter, in, out, i);
    double sum = 0;
    for (int64_t k = 0; k < taps.count; ++k) sum += raw[size_t(k)] = taps.weight(k);
    int32_t* weights = &table.weights[size_t(i * stride)];
    int64_t count = 0;  // up to the last weight that is not 0
    for (int64_t k = 0; k < taps.count; ++k)
      if ((weights[k] = fixed_resize_weight(raw[size_t(k)] / sum)) != 0) count = k + 1;
    table.first[size_t(i)] = taps.first;
    table.count[size_t(i)] = count;
  }
  table.filter = filter, table.in = in, table.out = out, table.stride = stride;
}

constexpr int32_t half = 1 << (resize_weight_bits - 1);

void narrow_row(const ResizeTable& table, const uint8_t* in, int channels, uint8_t* out) {
  for (int64_t x = 0; x < table.out; ++x) {
    const int32_t* weights = &table.weights[size_t(x * table.stride)];
    const uint8_t* from = in + table.first[size_t(x)] * channels;
    for (int c = 0; c < channels; ++c) {
      int32_t sum = half;
      for (int64_t k = 0; k < table.count[size_t(x)]; ++k) sum += weights[k] * from[k * channels + c];
      *out++ = resized_level(sum);
    }
  }
}

}  // namespace

void resize(const ImageView& in, int64_t height, int64_t width, uint8_t* out, ResizeFilter filter,
            ResizeScratch& scratch) {
  check(in.height > 0 && in.width > 0 && height > 0 && width > 0,
        "[resize] expected sides of at least 1, got {}x{} to {}x{}", in.width, in.height, width, height);
  check(in.channels == 1 || in.channels == 3, "[resize] expected 1 or 3 channels, got {}", in.channels);
  fill_table(scratch.columns, filter, in.width, width);
  fill_table(scratch.rows, filter, in.height, height);
  const int64_t row = width * in.channels;
  scratch.narrowed.resize(size_t(in.height * row));
  for (int64_t y = 0; y < in.height; ++y)
    narrow_row(scratch.columns, in.row(y), in.channels, &scratch.narrowed[size_t(y * row)]);
  for (int64_t y = 0; y < height; ++y) {
    const int32_t* weights = &scratch.rows.weights[size_t(y * scratch.rows.stride)];
    const uint8_t* from = &scratch.narrowed[size_t(scratch.rows.first[size_t(y)] * row)];
    for (int64_t i = 0; i < row; ++i) {
      int32_t sum = half;
      for (int64_t k = 0; k < scratch.rows.count[size_t(y)]; ++k) sum += weights[k] * from[k * row + i];
      *out++ = resized_level(sum);
    }
  }
}

Image resize(const ImageView& in, int64_t height, int64_t width, ResizeFilter filter) {
  Image out = make_image(height, width, in.channels);
  ResizeScratch scratch;
  resize(in, height, width, out.pixels.data(), filter, scratch);
  return out;
}

}  // namespace tandem
