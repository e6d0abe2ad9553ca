// An 8-bit image on the host: rows of interleaved pixels, one channel (grey) or three (RGB).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem {

struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;             // 1 is grey, 3 is RGB
  std::vector<uint8_t> pixels;  // height x width x channels

  int64_t row_bytes() const { return width * channels; }
  uint8_t* row(int64_t y) { return pixels.data() + y * row_bytes(); }
  const uint8_t* row(int64_t y) const { return pixels.data() + y * row_bytes(); }
  uint8_t& at(int64_t y, int64_t x, int c = 0) { return pixels[size_t(y * row_bytes() + x * channels + c)]; }
  uint8_t at(int64_t y, int64_t x, int c = 0) const {
    return pixels[size_t(y * row_bytes() + x * channels + c)];
  }

  bool operator==(const Image&) const = default;
};

// A black image. Sides may be 0; sizes that no memory can hold are an Error.
Image make_image(int64_t height, int64_t width, int channels);

// Luma with PIL's weights for mode "L": (19595 R + 38470 G + 7471 B + 32768) >> 16. A grey image is copied.
Image to_grey(const Image& image);

// Three equal channels; an RGB image is copied.
Image to_rgb(const Image& image);

}  // namespace tandem
