// The kernel behind mix_batch().
#pragma once

#include <cstdint>

#include "tandem/augment/mix.h"
#include "tandem/device/stream.h"

namespace tandem::detail {

struct MixBatch {
  MixArguments arguments;
  const std::uint8_t* images = nullptr;
  std::int64_t image_count = 0;
  const std::int32_t* samples = nullptr;
  std::uint8_t* out = nullptr;
  std::int64_t count = 0;
  std::int32_t height = 0, width = 0, channels = 0;
  // Which of `samples` the first image is mixed with: the last one, or −1 in a part of a batch, where the row
  // before the part's first stands in front of `samples`.
  std::int64_t previous_of_first = count - 1;

  // Byte `at` of output image i.
  constexpr std::uint8_t level(std::int64_t i, std::int64_t at) const {
    const std::int64_t bytes = std::int64_t{height} * width * channels;
    const auto image = [&](std::int64_t sample) {
      return images + (sample < 0 || sample >= image_count ? 0 : sample) * bytes;
    };
    const std::uint8_t* const own = image(samples[i]);
    const std::uint8_t* const other = image(samples[i == 0 ? previous_of_first : i - 1]);
    const std::int64_t y = at / (std::int64_t{width} * channels), x = at / channels % width;
    const PixelBox& box = arguments.box;
    if (x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height) return other[at];
    constexpr std::int32_t full = MixArguments::full_weight;
    const std::int32_t weight = arguments.pixel_weight;
    if (weight == full) return own[at];
    return static_cast<std::uint8_t>((own[at] * weight + other[at] * (full - weight) + full / 2) >> 16);
  }
};

template <Backend B>
void mix_kernel(const MixBatch& batch, StreamView stream);

}  // namespace tandem::detail
