// 8-bit images on the host: rows of interleaved pixels, one channel (gray) or three (RGB).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem {

/// An 8-bit image that owns its pixels.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;             ///< 1 is gray, 3 is RGB
  std::vector<uint8_t> pixels;  ///< height x width x channels

  int64_t row_bytes() const { return width * channels; }
  uint8_t* row(int64_t y) { return pixels.data() + y * row_bytes(); }
  const uint8_t* row(int64_t y) const { return pixels.data() + y * row_bytes(); }
  uint8_t& at(int64_t y, int64_t x, int c = 0) { return pixels[size_t(y * row_bytes() + x * channels + c)]; }
  uint8_t at(int64_t y, int64_t x, int c = 0) const {
    return pixels[size_t(y * row_bytes() + x * channels + c)];
  }

  bool operator==(const Image&) const = default;
};

/// A non-owning view of an Image or of a region of one. Rows are `row_bytes` apart.
struct ImageView {
  ImageView(const uint8_t* first, int64_t view_height, int64_t view_width, int view_channels,
            int64_t view_row_bytes)
      : pixels(first),
        height(view_height),
        width(view_width),
        channels(view_channels),
        row_bytes(view_row_bytes) {}
  /// Implicit: an Image can be passed wherever a view is expected.
  ImageView(const Image& image)
      : ImageView(image.pixels.data(), image.height, image.width, image.channels, image.row_bytes()) {}

  const uint8_t* row(int64_t y) const { return pixels + y * row_bytes; }

  const uint8_t* pixels;
  int64_t height, width;
  int channels;
  int64_t row_bytes;
};

/// The size of an 8-bit image of any number of channels.
struct ImageSize {
  int height = 0;
  int width = 0;
  int channels = 1;

  constexpr int64_t bytes() const { return int64_t{height} * width * channels; }
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

/// A rectangle of pixels; (x, y) is its upper left corner.
struct PixelBox {
  int64_t x = 0, y = 0, width = 0, height = 0;

  bool operator==(const PixelBox&) const = default;
};

/// Throws Error unless the box holds at least one pixel and lies within height x width.
void check_box(const PixelBox& box, int64_t height, int64_t width);

/// A view of the pixels inside the box. Throws Error as check_box() does.
ImageView crop(ImageView view, const PixelBox& box);

/// Copies the pixels of a view into a new image.
Image copy(const ImageView& view);

/// A black image. Sides may be 0. Throws Error for negative sides, for channels other than 1 and 3, and for
/// sizes that cannot be allocated.
Image make_image(int64_t height, int64_t width, int channels);
/// The same, reusing the allocation of `memory`. Its old pixels may remain, so the caller must write every
/// one.
Image make_image(int64_t height, int64_t width, int channels, Image memory);

/// Luma with PIL's weights for mode "L": (19595 R + 38470 G + 7471 B + 32768) >> 16. A gray image is copied.
Image to_gray(const Image& image);

/// Repeats the gray channel three times; an RGB image is copied.
Image to_rgb(const Image& image);

}  // namespace tandem
