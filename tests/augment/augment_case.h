// Helpers for the augmentation tests: random images and recipes from a seed, and a recipe applied one
// operation at a time, each as a separate pass.
#pragma once

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

// 1 to 6 operations of all kinds in any order, with arguments from 0 to far beyond the image.
inline Recipe random_recipe(std::uint32_t seed, bool cubic) {
  Recipe recipe;
  const auto word = [&](int index) {
    return random_block(seed, 2, static_cast<std::uint64_t>(index) / 4).word[index % 4];
  };
  recipe.count = static_cast<int>(1 + word(0) % 6);
  for (int i = 0; i < recipe.count; ++i) {
    const std::uint32_t kind = word(4 * i + 1) % 4, size = word(4 * i + 2) % 4;
    const Interpolation interpolations[] = {Interpolation::linear, Interpolation::nearest,
                                            cubic ? Interpolation::cubic : Interpolation::linear};
    const double degrees[] = {0, 12, 95, 1000}, pixels[] = {0, 2, 9, 40}, tilts[] = {0, 0.15, 1.5, 50},
                 amounts[] = {0, 0.1, 0.5, 1};
    if (kind == 0)
      recipe.steps[i] = random_rotate({-degrees[size], degrees[size]}, interpolations[word(4 * i + 3) % 3]);
    else if (kind == 1)
      recipe.steps[i] = random_shift({-pixels[size], pixels[size]}, {-pixels[size], pixels[size]});
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
    const bool rotation = steps[i].kind == AugmentKind::rotate;
    detail::run_fused_pass({.pass = {.begin = i,
                                     .rotation = noise || rotation ? i : i + 1,
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
