// The left factor of a convolution of low precision, in bytes: one row per output pixel, with the input
// pixels under its window in the order of the weight, then zeros up to whole steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tandem/core/simd.h"
#include "tandem/ops/conv/conv2d_kernel.h"

namespace tandem::detail {

// Copies with vectors that may overlap each other.
template <std::int64_t vector_bytes>
[[gnu::always_inline]] inline void copy_bytes(std::byte* to, const std::byte* from, std::int64_t count) {
  using Lanes = Vector<std::uint8_t, static_cast<std::size_t>(vector_bytes)>;
  if (count < vector_bytes) {
    if constexpr (vector_bytes > 4)
      copy_bytes<vector_bytes / 2>(to, from, count);
    else
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  std::int64_t i = 0;
  for (; i + vector_bytes <= count; i += vector_bytes)
    *reinterpret_cast<Lanes*>(to + i) = *reinterpret_cast<const Lanes*>(from + i);
  if (i < count)
    *reinterpret_cast<Lanes*>(to + count - vector_bytes) =
        *reinterpret_cast<const Lanes*>(from + count - vector_bytes);
}

struct WindowRows {
  const Conv2dPlan& plan;
  const std::byte* x;
  std::int64_t element_bytes;
  std::int64_t first_channel;  // of the group
  std::int64_t row_bytes;      // with the padding
  std::uint8_t padding_value;

  // Writes the rows of `count` output pixels, counted over all images, from `first` on.
  [[gnu::always_inline]] void gather(std::byte* to, std::int64_t first, std::int64_t count) const {
    const std::int64_t channel_bytes = plan.channels / plan.groups * element_bytes,
                       pixel_bytes = plan.channels * element_bytes;
    const std::int64_t inner = plan.kernel.y * plan.kernel.x * channel_bytes;
    const bool whole_lines = plan.window.dilation.x == 1 && plan.groups == 1;
    std::int64_t out_x = first % plan.out.x, out_y = first / plan.out.x % plan.out.y,
                 image = first / plan.out.x / plan.out.y;
    for (std::int64_t r = 0; r < count; ++r, to += row_bytes) {
      const std::int64_t left = out_x * plan.window.stride.x - plan.window.padding.x;
      std::byte* at = to;
      for (std::int64_t ky = 0; ky < plan.kernel.y; ++ky) {
        const std::int64_t y =
            out_y * plan.window.stride.y - plan.window.padding.y + ky * plan.window.dilation.y;
        const bool inside = y >= 0 && y < plan.in.y;
        const std::byte* const line = x + (image * plan.in.y + y) * plan.in.x * pixel_bytes;
        if (whole_lines) {
          const std::int64_t begin =
              inside ? std::clamp<std::int64_t>(-left, 0, plan.kernel.x) : plan.kernel.x;
          const std::int64_t end =
              inside ? std::clamp<std::int64_t>(plan.in.x - left, begin, plan.kernel.x) : plan.kernel.x;
          if (begin > 0) fill(at, begin * pixel_bytes);
          if (end > begin)
            copy_bytes<64>(at + begin * pixel_bytes, line + (left + begin) * pixel_bytes,
                           (end - begin) * pixel_bytes);
          if (end < plan.kernel.x) fill(at + end * pixel_bytes, (plan.kernel.x - end) * pixel_bytes);
          at += plan.kernel.x * pixel_bytes;
          continue;
        }
        for (std::int64_t kx = 0; kx < plan.kernel.x; ++kx, at += channel_bytes) {
          const std::int64_t pixel = left + kx * plan.window.dilation.x;
          if (inside && pixel >= 0 && pixel < plan.in.x)
            copy_bytes<64>(at, line + pixel * pixel_bytes + first_channel * element_bytes, channel_bytes);
          else
            fill(at, channel_bytes);
        }
      }
      if (inner < row_bytes) std::memset(at, 0, static_cast<std::size_t>(row_bytes - inner));
      if (++out_x < plan.out.x) continue;
      out_x = 0;
      if (++out_y < plan.out.y) continue;
      out_y = 0;
      ++image;
    }
  }

 private:
  void fill(std::byte* to, std::int64_t count) const {
    std::memset(to, padding_value, static_cast<std::size_t>(count));
  }
};

}  // namespace tandem::detail
