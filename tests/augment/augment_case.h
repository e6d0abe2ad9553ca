// Helpers for the augmentation tests: random images and recipes from a seed, and a recipe applied one
// operation at a time, each as a separate pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tandem/augment/fused_pass.h"
#include "tandem/augment/transform.h"

namespace tandem {

using detail::SampledStep;
using Levels = std::vector<std::uint8_t>;

inline Levels random_levels(const ImageSize& size, std::uint32_t seed) {
  Levels levels(static_cast<std::size_t>(size.bytes()));
  for (std::size_t i = 0; i < levels.size(); ++i)
    levels[i] = static_cast<std::uint8_t>(random_block(seed, 1, i / 4).word[i % 4] >> 7);
  return levels;
}

// One pass that contains all operations: a rotation, moves and noise.
inline Recipe all_operations() {
  return Transform::parse("rotate -12 12, shift -2 2, skew -0.15 0.15, noise 0 0.1").pixels();
}

// A kernel of whole numbers from a seed, of any size, with at least one above 0.
inline BlurKernel random_kernel(std::uint32_t seed) {
  const Words4 words = random_block(seed, 3, 0);
  BlurKernel kernel{.height = static_cast<std::uint8_t>(1 + words.word[0] % 5),
                    .width = static_cast<std::uint8_t>(1 + words.word[1] % 5),
                    .gradient = words.word[2] % 2 == 0};
  for (int i = 0; i < kernel.height * kernel.width; ++i)
    kernel.weights[i] = static_cast<std::int16_t>(
        static_cast<int>(random_block(seed, 4, static_cast<std::uint64_t>(i)).word[0] % 31) - 12);
  kernel.weights[0] = 3;
  return kernel;
}

// 1 to 6 operations of all kinds in any order, with arguments from 0 to far beyond the image.
inline Recipe random_recipe(std::uint32_t seed, bool cubic) {
  Recipe recipe;
  const auto word = [&](int index) {
    return random_block(seed, 2, static_cast<std::uint64_t>(index) / 4).word[index % 4];
  };
  recipe.count = static_cast<int>(1 + word(0) % 6);
  for (int i = 0; i < recipe.count; ++i) {
    const std::uint32_t kind = word(4 * i + 1) % 9, size = word(4 * i + 2) % 4;
    const Interpolation interpolations[] = {Interpolation::linear, Interpolation::nearest,
                                            cubic ? Interpolation::cubic : Interpolation::linear};
    const double degrees[] = {0, 12, 95, 1000}, pixels[] = {0, 2, 9, 40}, tilts[] = {0, 0.15, 1.5, 50},
                 amounts[] = {0, 0.1, 0.5, 1}, factors[] = {1, 1.2, 3, 100}, areas[] = {1, 0.7, 0.1, 1e-6};
    const Interpolation interpolation = interpolations[word(4 * i + 3) % 3];
    if (kind == 0)
      recipe.steps[i] = random_rotate({-degrees[size], degrees[size]}, interpolation);
    else if (kind == 4)
      recipe.steps[i] = random_zoom({std::max(0.25, 1 / factors[size]), factors[size]}, interpolation);
    else if (kind == 5)
      recipe.steps[i] = random_crop({areas[size], 1});
    else if (kind == 6)
      recipe.steps[i] = random_flip(0.7);
    else if (kind == 7)
      recipe.steps[i] = random_blur(0.7, random_kernel(word(4 * i + 3)));
    else if (kind == 1)
      recipe.steps[i] = random_shift({-pixels[size], pixels[size]}, {-pixels[size], pixels[size]});
    else if (kind == 8)
      recipe.steps[i] = random_reflected_shift({-pixels[size], pixels[size]}, {-pixels[size], 1});
    else if (kind == 2)
      recipe.steps[i] = random_skew({-tilts[size], tilts[size]});
    else
      recipe.steps[i] = random_noise({0, amounts[size]});
  }
  return recipe;
}

inline std::vector<SampledStep> sample_steps(const Recipe& recipe, const ImageSize& size, RandomKey key) {
  std::vector<SampledStep> steps;
  for (int i = 0; i < recipe.count; ++i) {
    key.operation = static_cast<std::uint32_t>(i);
    steps.push_back(detail::sample_step(recipe.steps[i], size, key));
  }
  return steps;
}

inline Levels one_operation_at_a_time(const Recipe& recipe, const ImageSize& size, const RandomKey& key,
                                      Levels image) {
  const std::vector<SampledStep> steps = sample_steps(recipe, size, key);
  AugmentScratch scratch;
  Levels next(image.size());
  for (int i = 0; i < recipe.count; ++i) {
    const bool noise = steps[i].kind == AugmentKind::noise;
    detail::run_fused_pass({.recipe = &recipe,
                            .pass = {.begin = i,
                                     .resample = detail::is_move(steps[i].kind) ? i + 1 : i,
                                     .moves_end = noise ? i : i + 1,
                                     .end = i + 1},
                            .steps = steps.data(),
                            .size = size,
                            .key = key,
                            .in = image.data(),
                            .out = next.data()},
                           scratch);
    std::swap(image, next);
  }
  return image;
}

inline Levels augmented(const Recipe& recipe, const ImageSize& size, const RandomKey& key,
                        const Levels& image) {
  AugmentScratch scratch;
  Levels out(image.size());
  augment_image(recipe, size, key, image.data(), out.data(), scratch);
  return out;
}

}  // namespace tandem
