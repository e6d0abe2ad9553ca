// What Winograd's convolution and its weight gradient share: where the tiles lie, and patches of images or of
// gradients on their way through a transform.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tandem/core/simd.h"
#include "tandem/ops/conv2d.h"
#include "tandem/ops/product_tile.h"
#include "tandem/ops/winograd_transform.h"

namespace tandem::winograd {

// Rows of zeros between the 36 matrices keep them from falling into the same places of a cache.
inline constexpr std::int64_t gap = 16;

// The tiles of all images, row by row.
struct Tiles {
  std::int64_t down, across, count;

  explicit Tiles(const Conv2dPlan& plan)
      : down(pieces_of(plan.out.y, results)),
        across(pieces_of(plan.out.x, results)),
        count(plan.images * down * across) {}

  // The image of a tile and its first result.
  struct Place {
    std::int64_t image, y, x;
  };
  Place at(std::int64_t tile) const {
    const std::int64_t line = tile / across;
    return {line / down, line % down * results, tile % across * results};
  }
};

// The pixels of a square of `side` from (y, x) on; null outside the image.
template <int side>
struct Square {
  const float* pixels[side * side];

  [[gnu::always_inline]] void look(const float* images, YX size, std::int64_t channels, std::int64_t image,
                                   std::int64_t y, std::int64_t x) {
    for (int i = 0; i < side; ++i)
      for (int j = 0; j < side; ++j) {
        const bool inside = y + i >= 0 && y + i < size.y && x + j >= 0 && x + j < size.x;
        pixels[i * side + j] =
            inside ? images + ((image * size.y + y + i) * size.x + x + j) * channels : nullptr;
      }
  }

  // Channels [c, c + lanes) of all pixels; zeros where there is nothing.
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
      float some[lanes] = {};
      for (std::int64_t k = 0; pixels[i] && k < channels - c; ++k) some[k] = pixels[i][c + k];
      to[i] = *reinterpret_cast<const Memory*>(some);
    }
  }
};

// Bᵀ d B of one patch, channels [c, c + lanes).
template <std::size_t bytes, class V>
[[gnu::always_inline]] inline void transform_patch(V* to, const Square<patch>& square, std::int64_t c,
                                                   std::int64_t channels) {
  V d[places], half[places];
  square.load<bytes>(d, c, channels);
#pragma GCC unroll 6
  for (int j = 0; j < patch; ++j) of_patch(half + j, d + j, patch);
#pragma GCC unroll 6
  for (int i = 0; i < patch; ++i) of_patch(to + i * patch, half + i * patch, 1);
}

}  // namespace tandem::winograd
