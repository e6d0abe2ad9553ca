// How windows slide over an image, for convolutions and pooling.
#pragma once

#include <cstdint>

namespace tandem {

// A pair of sizes or distances: along the height, along the width.
struct YX {
  std::int64_t y = 1, x = 1;

  friend bool operator==(const YX&, const YX&) = default;
};

struct Window {
  YX stride = {1, 1};
  YX padding = {0, 0};  // on both sides
  YX dilation = {1, 1};

  friend bool operator==(const Window&, const Window&) = default;
};

// How many places windows of `kernel` have on an image of `size`. Error for numbers that make no sense, and
// when there is no place.
YX window_places(const char* op, YX size, YX kernel, const Window& window);

}  // namespace tandem
