#include "tandem/augment/mix.h"

#include <algorithm>
#include <cmath>

#include "tandem/augment/mix_kernel.h"
#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/core/philox.h"
#include "tandem/device/on_backend.h"

namespace tandem {
namespace {

constexpr std::uint32_t mix_operation = 0x4D495820;  // used by no other operation

// The random numbers of one step.
class MixSampler {
 public:
  MixSampler(std::uint64_t seed, std::int64_t epoch, std::int64_t step)
      : key_{.seed = seed,
             .epoch = static_cast<std::uint32_t>(epoch),
             .sample = static_cast<std::uint32_t>(step),
             .operation = mix_operation} {}

  // In (0, 1).
  double uniform() {
    const Words4 words = key_.block(block_++);
    return to_unit_double(words.word[0], words.word[1]) + 0x1p-54;
  }
  std::int64_t below(std::int64_t bound) {
    return to_below(key_.block(block_++).word[0], static_cast<std::uint32_t>(bound));
  }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }
  // The logarithm of a sample from Gamma(shape), by Marsaglia and Tsang with their correction for shapes
  // below 1.
  double log_gamma_sample(double shape) {
    if (shape < 1) return log_gamma_sample(shape + 1) + std::log(uniform()) / shape;
    const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    while (true) {
      const double x = normal(), v = std::pow(1 + c * x, 3);
      if (v > 0 && std::log(uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v);
    }
  }
  double beta(double shape) {
    const double own = log_gamma_sample(shape), other = log_gamma_sample(shape);
    return 1 / (1 + std::exp(other - own));
  }

 private:
  RandomKey key_;
  std::uint32_t block_ = 0;
};

void check_images(const char* what, const Tensor& tensor) {
  check(tensor.dtype() == DType::u8 && tensor.rank() == 4 && tensor.is_contiguous(),
        "[mix] expected contiguous {} of u8 in shape (count, height, width, channels), got {} of {}", what,
        tensor.shape().to_string(), name_of(tensor.dtype()));
}

}  // namespace

void check_mix_recipe(const MixRecipe& recipe) {
  for (const double alpha : {recipe.mixup, recipe.cutmix})
    check(alpha == 0 || (alpha >= 0.01 && alpha <= 1000),
          "[mix] expected 0 or a number from 0.01 to 1000 for mixup and cutmix, got {}", alpha);
}

MixArguments sample_mix(const MixRecipe& recipe, int height, int width, std::uint64_t seed,
                        std::int64_t epoch, std::int64_t step) {
  check_mix_recipe(recipe);
  MixArguments arguments;
  if (recipe.empty()) return arguments;
  MixSampler sampler(seed, epoch, step);
  const bool both = recipe.mixup > 0 && recipe.cutmix > 0;
  const bool mixup = both ? sampler.below(2) == 0 : recipe.mixup > 0;
  const double weight = sampler.beta(mixup ? recipe.mixup : recipe.cutmix);
  if (mixup) {
    constexpr std::int32_t full = MixArguments::full_weight;
    arguments.pixel_weight = static_cast<std::int32_t>(std::lround(weight * full));
    arguments.label_weight = arguments.pixel_weight / static_cast<double>(full);
    return arguments;
  }
  const std::int64_t x = sampler.below(width), y = sampler.below(height);
  const double half = 0.5 * std::sqrt(1 - weight);
  const auto half_width = static_cast<std::int64_t>(half * width);
  const auto half_height = static_cast<std::int64_t>(half * height);
  PixelBox& box = arguments.box;
  box.x = std::max<std::int64_t>(x - half_width, 0);
  box.y = std::max<std::int64_t>(y - half_height, 0);
  box.width = std::min<std::int64_t>(x + half_width, width) - box.x;
  box.height = std::min<std::int64_t>(y + half_height, height) - box.y;
  arguments.label_weight =
      1 - static_cast<double>(box.width * box.height) / (static_cast<double>(width) * height);
  return arguments;
}

template <>
void detail::mix_kernel<Backend::cpu>(const MixBatch& batch, StreamView) {
  const std::int64_t bytes = std::int64_t{batch.height} * batch.width * batch.channels;
  parallel_for(batch.count * bytes, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) batch.out[i] = batch.level(i / bytes, i % bytes);
  });
}

void mix_batch(const MixArguments& arguments, const Tensor& images, const Tensor& samples, Tensor out) {
  const Device device = common_device("mix", {&images, &samples, &out});
  check_images("images", images);
  check_images("output", out);
  check(samples.dtype() == DType::i32 && samples.rank() == 1 && samples.is_contiguous() &&
            samples.size(0) == out.size(0),
        "[mix] expected {} samples of i32, got {} of {}", out.size(0), samples.shape().to_string(),
        name_of(samples.dtype()));
  check(images.size(1) == out.size(1) && images.size(2) == out.size(2) && images.size(3) == out.size(3) &&
            images.numel() < std::int64_t{1} << 60 && images.size(1) <= 1 << 16 && images.size(2) <= 1 << 16,
        "[mix] expected images and output of the same size, got {} and {}", images.shape().to_string(),
        out.shape().to_string());
  if (!device.is_cuda())
    for (std::int64_t i = 0; i < samples.numel(); ++i) {
      const std::int32_t sample = samples.data<std::int32_t>()[i];
      check(sample >= 0 && sample < images.size(0),
            "[mix] expected samples from 0 to below {}, got {} at position {}", images.size(0), sample, i);
    }
  if (out.numel() == 0) return;
  const detail::MixBatch batch{.arguments = arguments,
                               .images = images.data<std::uint8_t>(),
                               .image_count = images.size(0),
                               .samples = samples.data<std::int32_t>(),
                               .out = out.data<std::uint8_t>(),
                               .count = out.size(0),
                               .height = static_cast<std::int32_t>(out.size(1)),
                               .width = static_cast<std::int32_t>(out.size(2)),
                               .channels = static_cast<std::int32_t>(out.size(3))};
  on_backend(device, "mix", [&]<Backend B>() { detail::mix_kernel<B>(batch, current_stream(device)); });
}

}  // namespace tandem
