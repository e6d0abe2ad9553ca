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

// Pixels that something else owns: an Image, or a part of one. Rows are `row_bytes` apart.
struct ImageView {
  ImageView(const uint8_t* first, int64_t view_height, int64_t view_width, int view_channels,
            int64_t bytes_a_row)
      : pixels(first),
        height(view_height),
        width(view_width),
        channels(view_channels),
        row_bytes(bytes_a_row) {}
  ImageView(const Image& image)  // not explicit: an Image is seen whole wherever a view is asked for
      : ImageView(image.pixels.data(), image.height, image.width, image.channels, image.row_bytes()) {}

  const uint8_t* row(int64_t y) const { return pixels + y * row_bytes; }

  const uint8_t* pixels;
  int64_t height, width;
  int channels;
  int64_t row_bytes;
};

// A rectangle of pixels; (x, y) is its upper left corner.
struct PixelBox {
  int64_t x = 0, y = 0, width = 0, height = 0;

  bool operator==(const PixelBox&) const = default;
};

// Error unless the box holds at least one pixel and lies within height x width.
void check_box(const PixelBox& box, int64_t height, int64_t width);

// The pixels inside the box, which must hold at least one and lie within the view.
ImageView part(ImageView view, const PixelBox& box);

// The same as an image of its own.
Image copy(const ImageView& view);

// A black image. Sides may be 0; sizes that no memory can hold are an Error.
Image make_image(int64_t height, int64_t width, int channels);
// In the memory of another, whose pixels may show: for those who write every one.
Image make_image(int64_t height, int64_t width, int channels, Image memory);

// Luma with PIL's weights for mode "L": (19595 R + 38470 G + 7471 B + 32768) >> 16. A grey image is copied.
Image to_grey(const Image& image);

// Three equal channels; an RGB image is copied.
Image to_rgb(const Image& image);

}  // namespace tandem
