// What the Winograd convolution and its weight gradient share on the CPU: the positions of the tiles, and the
// loading and transforming of tiles of images and of gradients.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tandem/core/simd.h"
#include "tandem/ops/conv/conv2d_kernel.h"
#include "tandem/ops/conv/winograd_transform.h"
#include "tandem/ops/product_tile.h"

namespace tandem::detail::winograd {

// Padding after each of the 36 matrices, so that equal offsets in them do not compete for the same cache
// sets.
inline constexpr std::int64_t matrix_padding = 16;

// The tiles of all images, row by row.
struct Tiles {
  std::int64_t rows;  // of tiles in an image
  std::int64_t columns;
  std::int64_t count;

  explicit Tiles(const Conv2dPlan& plan)
      : rows(ceil_div(plan.out.y, output_tile)),
        columns(ceil_div(plan.out.x, output_tile)),
        count(plan.images * rows * columns) {}

  // The image of a tile and its top left result.
  struct Position {
    std::int64_t image, y, x;
  };
  Position position(std::int64_t tile) const {
    const std::int64_t row = tile / columns;
    return {row / rows, row % rows * output_tile, tile % columns * output_tile};
  }
};

// Pointers to the pixels of a square tile from (y, x) on; null outside the image.
template <int side>
struct PixelTile {
  const float* pixels[side * side];

  [[gnu::always_inline]] void locate(const float* images, YX size, std::int64_t channels, std::int64_t image,
                                     std::int64_t y, std::int64_t x) {
    for (int i = 0; i < side; ++i)
      for (int j = 0; j < side; ++j) {
        const bool inside = y + i >= 0 && y + i < size.y && x + j >= 0 && x + j < size.x;
        pixels[i * side + j] =
            inside ? images + ((image * size.y + y + i) * size.x + x + j) * channels : nullptr;
      }
  }

  // Loads channels [c, c + lanes) of all pixels; zeros outside the image and beyond the last channel.
  template <std::size_t bytes, class V>
  [[gnu::always_inline]] void load(V* to, std::int64_t c, std::int64_t channels) const {
    constexpr std::int64_t lanes = bytes / sizeof(float);
    using Memory = Vector<float, bytes>;
    if (c + lanes <= channels) {
      for (int i = 0; i < side * side; ++i)
        to[i] = pixels[i] ? *reinterpret_cast<const Memory*>(pixels[i] + c) : V{};
      return;
    }
    for (int i = 0; i < side * side; ++i) {
      float last_channels[lanes] = {};
      for (std::int64_t k = 0; pixels[i] && k < channels - c; ++k) last_channels[k] = pixels[i][c + k];
      to[i] = *reinterpret_cast<const Memory*>(last_channels);
    }
  }
};

// Bᵀ d B of one input tile, channels [c, c + lanes).
template <std::size_t bytes, class V>
[[gnu::always_inline]] inline void transform_input(V* to, const PixelTile<input_tile>& tile, std::int64_t c,
                                                   std::int64_t channels) {
  V d[tile_elements], half[tile_elements];
  tile.load<bytes>(d, c, channels);
#pragma GCC unroll 6
  for (int j = 0; j < input_tile; ++j) input_transform(half + j, d + j, input_tile);
#pragma GCC unroll 6
  for (int i = 0; i < input_tile; ++i) input_transform(to + i * input_tile, half + i * input_tile, 1);
}

}  // namespace tandem::detail::winograd
