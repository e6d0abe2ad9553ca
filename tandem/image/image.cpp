#include "tandem/image/image.h"

#include <algorithm>
#include <limits>

#include "tandem/core/check.h"
#include "tandem/image/channels.h"

namespace tandem {

Image make_image(int64_t height, int64_t width, int channels, Image memory) {
  check(height >= 0 && width >= 0, "[image] expected sides of at least 0, got {}x{} (width x height)", width,
        height);
  check(channels == 1 || channels == 3, "[image] expected 1 or 3 channels, got {}", channels);
  const int64_t max_bytes = std::numeric_limits<std::ptrdiff_t>::max();
  check(height == 0 || width <= max_bytes / channels / height, "[image] {}x{} pixels do not fit in memory",
        width, height);
  memory.height = height, memory.width = width, memory.channels = channels;
  memory.pixels.resize(size_t(height * width * channels));
  return memory;
}

Image make_image(int64_t height, int64_t width, int channels) {
  return make_image(height, width, channels, {});
}

void check_box(const PixelBox& box, int64_t height, int64_t width) {
  check(box.x >= 0 && box.y >= 0 && box.width > 0 && box.height > 0 && box.width <= width - box.x &&
            box.height <= height - box.y,
        "[image] expected a box within {}x{} pixels, got {}x{} at ({}, {})", width, height, box.width,
        box.height, box.x, box.y);
}

ImageView crop(ImageView view, const PixelBox& box) {
  check_box(box, view.height, view.width);
  return {view.row(box.y) + box.x * view.channels, box.height, box.width, view.channels, view.row_bytes};
}

Image copy(const ImageView& view) {
  Image image = make_image(view.height, view.width, view.channels);
  for (int64_t y = 0; y < view.height; ++y) std::copy_n(view.row(y), image.row_bytes(), image.row(y));
  return image;
}

Image to_gray(const Image& image) {
  if (image.channels == 1) return image;
  Image gray;
  with_channels(image, 1, gray);
  return gray;
}

Image to_rgb(const Image& image) {
  if (image.channels == 3) return image;
  Image rgb;
  with_channels(image, 3, rgb);
  return rgb;
}

}  // namespace tandem
