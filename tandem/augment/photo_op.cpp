#include "tandem/augment/photo_op.h"

#include <cstring>

namespace tandem::detail {
namespace {

void apply_table(const PhotoOp& op, std::int64_t pixels, std::uint8_t* image) {
  std::int64_t gray_sum = 0;
  if (needs_gray_mean(op.kind))
    for (std::int64_t i = 0; i < pixels; ++i)
      gray_sum += gray_level(image[3 * i], image[3 * i + 1], image[3 * i + 2]);
  std::uint32_t histogram[3][256] = {};
  if (needs_histogram(op.kind))
    for (std::int64_t i = 0; i < 3 * pixels; ++i) ++histogram[i % 3][image[i]];
  std::uint8_t tables[3][256];
  for (int channel = 0; channel < 3; ++channel)
    make_table(op, rounded_mean(gray_sum, pixels), histogram[channel], tables[channel]);
  for (std::int64_t i = 0; i < pixels; ++i, image += 3)
    for (int channel = 0; channel < 3; ++channel) image[channel] = tables[channel][image[channel]];
}

template <class F>
void apply_to_pixels(std::int64_t pixels, std::uint8_t* image, F&& change) {
  for (std::int64_t i = 0; i < pixels; ++i, image += 3) {
    const PhotoPixel to = change(PhotoPixel{image[0], image[1], image[2]});
    image[0] = static_cast<std::uint8_t>(to.r);
    image[1] = static_cast<std::uint8_t>(to.g);
    image[2] = static_cast<std::uint8_t>(to.b);
  }
}

// The border pixels stay unchanged.
void sharpen(std::int32_t factor, int height, int width, const std::uint8_t* from, std::uint8_t* image) {
  const int row = 3 * width;
  for (int y = 1; y + 1 < height; ++y)
    for (int x = 3; x < row - 3; ++x) {
      const std::uint8_t* at = from + y * row + x;
      const std::int32_t around =
          at[-row - 3] + at[-row] + at[-row + 3] + at[-3] + at[3] + at[row - 3] + at[row] + at[row + 3];
      image[y * row + x] = static_cast<std::uint8_t>(sharpen_level(*at, around, factor));
    }
}

void move_pixels(const PhotoOp& op, int height, int width, const std::uint8_t* from, std::uint8_t* image) {
  for (std::int32_t y = 0; y < height; ++y)
    for (std::int32_t x = 0; x < width; ++x, image += 3) {
      std::int32_t from_x = 0, from_y = 0;
      if (source_pixel(op, x, y, height, width, from_x, from_y))
        std::memcpy(image, from + 3 * (from_y * width + from_x), 3);
      else
        std::memset(image, 0, 3);
    }
}

void warp(const PhotoOp& op, int height, int width, const std::uint8_t* from, std::uint8_t* image) {
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x, image += 3)
      for (int c = 0; c < 3; ++c)
        image[c] = perspective_level(op.coefficients, x, y, height, width, from + c);
}

}  // namespace

void apply_photo_op(const PhotoOp& op, int height, int width, std::uint8_t* image,
                    std::vector<std::uint8_t>& copy) {
  const std::int64_t pixels = std::int64_t{height} * width;
  if (uses_table(op.kind)) return apply_table(op, pixels, image);
  if (op.kind == PhotoOpKind::saturation)
    return apply_to_pixels(pixels, image,
                           [&](const PhotoPixel& pixel) { return saturate_pixel(pixel, op.value); });
  if (op.kind == PhotoOpKind::hue)
    return apply_to_pixels(pixels, image,
                           [&](const PhotoPixel& pixel) { return rotate_hue(pixel, op.value); });
  if (op.kind == PhotoOpKind::identity) return;
  copy.assign(image, image + 3 * pixels);
  if (op.is_geometric())
    move_pixels(op, height, width, copy.data(), image);
  else if (op.kind == PhotoOpKind::perspective)
    warp(op, height, width, copy.data(), image);
  else
    sharpen(op.value, height, width, copy.data(), image);
}

}  // namespace tandem::detail
