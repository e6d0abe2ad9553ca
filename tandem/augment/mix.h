// Mixup and cutmix: every image of a batch is mixed with its neighbour, as torchvision's MixUp and CutMix do
// (image i with image i − 1, the first with the last). What is drawn is a function of (seed, epoch, step) and
// the same for the whole batch; the loss weighs both labels by the draw's share.
#pragma once

#include <cstdint>
#include <string>

#include "tandem/device/stream.h"
#include "tandem/image/image.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// The α of Beta(α, α), from which the share is drawn; 0: off. Where both are on, each has half of the
// batches.
struct MixRecipe {
  double mixup = 0, cutmix = 0;

  bool empty() const { return mixup == 0 && cutmix == 0; }
  friend bool operator==(const MixRecipe&, const MixRecipe&) = default;
};

inline constexpr std::int32_t whole_share = 1 << 16;

struct MixDraw {
  std::int32_t share = whole_share;  // of the image itself, in 1/65536: mixup's weight of every level
  PixelBox box;                      // cutmix: what comes from the neighbour instead; empty: none
  double own = 1;                    // the weight of the image's own label; the neighbour's has the rest
};

// Error for an α that is not 0 and not from 0.01 to 1000.
void check_mix_recipe(const MixRecipe& recipe);

MixDraw draw_mix(const MixRecipe& recipe, int height, int width, std::uint64_t seed, std::int64_t epoch,
                 std::int64_t step);

// out[i] = images[samples[i]] mixed with images[samples[i − 1]]. images, out: u8 (count, height, width,
// channels), apart from each other; samples: i32, as many as `out` has images. A sample that is not there is
// an Error on the CPU; on CUDA image 0 stands for it.
void mix_batch(const MixDraw& draw, const Tensor& images, const Tensor& samples, const Tensor& out);

struct MixBatch {
  MixDraw draw;
  const std::uint8_t* images = nullptr;
  std::int64_t image_count = 0;
  const std::int32_t* samples = nullptr;
  std::uint8_t* out = nullptr;
  std::int64_t count = 0;
  std::int32_t height = 0, width = 0, channels = 0;

  // Byte `at` of image i.
  constexpr std::uint8_t level(std::int64_t i, std::int64_t at) const {
    const std::int64_t bytes = std::int64_t{height} * width * channels;
    const auto image = [&](std::int64_t sample) {
      return images + (sample < 0 || sample >= image_count ? 0 : sample) * bytes;
    };
    const std::uint8_t* const own = image(samples[i]);
    const std::uint8_t* const other = image(samples[i == 0 ? count - 1 : i - 1]);
    const std::int64_t y = at / (std::int64_t{width} * channels), x = at / channels % width;
    const PixelBox& box = draw.box;
    if (x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height) return other[at];
    if (draw.share == whole_share) return own[at];
    return static_cast<std::uint8_t>(
        (own[at] * draw.share + other[at] * (whole_share - draw.share) + whole_share / 2) >> 16);
  }
};

template <Backend B>
void mix_kernel(const MixBatch& batch, StreamView stream);

}  // namespace tandem
