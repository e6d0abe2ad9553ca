// How convolution and pooling windows slide over an image.
#pragma once

#include <cstdint>

namespace tandem {

/// A pair of sizes or distances: along the height (y) and along the width (x). One number sets both.
struct YX {
  std::int64_t y = 1;
  std::int64_t x = 1;

  constexpr YX() = default;
  constexpr YX(std::int64_t both) : y(both), x(both) {}
  constexpr YX(std::int64_t along_y, std::int64_t along_x) : y(along_y), x(along_x) {}

  friend bool operator==(const YX&, const YX&) = default;
};

/// Stride, padding and dilation of a sliding window, with the meaning they have in PyTorch.
struct Window {
  YX stride = {1, 1};
  YX padding = {0, 0};  ///< Added on both sides of each axis.
  YX dilation = {1, 1};

  friend bool operator==(const Window&, const Window&) = default;
};

}  // namespace tandem
