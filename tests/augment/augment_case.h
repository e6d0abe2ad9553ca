// What the tests of augmentation share: images and recipes drawn from a number, and a recipe's operations
// done one after the other, each as a pass of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/augment/pass.h"

namespace tandem {

using Levels = std::vector<std::uint8_t>;

inline Levels random_levels(const ImageSize& size, std::uint32_t number) {
  Levels levels(static_cast<std::size_t>(size.bytes()));
  for (std::size_t i = 0; i < levels.size(); ++i)
    levels[i] = static_cast<std::uint8_t>(random_block(number, 1, i / 4).word[i % 4] >>
                                          7);  // any eight bits are as good as others
  return levels;
}

// The pass with everything in it: a rotation, moves, noise.
inline Recipe all_four() {
  return parse_recipe("rotate -12 12, shift -2 2, skew -0.15 0.15, noise 0 0.1");
}

// 1 to 6 operations of all kinds in any order, with arguments from small to far beyond the image.
inline Recipe random_recipe(std::uint32_t number, bool cubic) {
  Recipe recipe;
  const auto word = [&](int place) {
    return random_block(number, 2, static_cast<std::uint64_t>(place) / 4).word[place % 4];
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

inline std::vector<DrawnStep> draw_steps(const Recipe& recipe, const ImageSize& size, DrawKey key) {
  std::vector<DrawnStep> drawn;
  for (int i = 0; i < recipe.count; ++i) {
    key.operation = static_cast<std::uint32_t>(i);
    drawn.push_back(draw_step(recipe.steps[i], size, key));
  }
  return drawn;
}

inline Levels one_after_the_other(const Recipe& recipe, const ImageSize& size, const DrawKey& key,
                                  Levels image) {
  const std::vector<DrawnStep> drawn = draw_steps(recipe, size, key);
  AugmentScratch scratch;
  Levels next(image.size());
  for (int i = 0; i < recipe.count; ++i) {
    const bool noise = drawn[i].kind == AugmentKind::noise;
    const bool rotates = drawn[i].kind == AugmentKind::rotate;
    run_pass({.pass = {.begin = i,
                       .rotation = noise || rotates ? i : i + 1,
                       .moves_end = noise ? i : i + 1,
                       .end = i + 1},
              .steps = drawn.data(),
              .size = size,
              .key = key,
              .in = image.data(),
              .out = next.data()},
             scratch);
    std::swap(image, next);
  }
  return image;
}

inline Levels augmented(const Recipe& recipe, const ImageSize& size, const DrawKey& key,
                        const Levels& image) {
  AugmentScratch scratch;
  Levels out(image.size());
  augment_image(recipe, size, key, image.data(), out.data(), scratch);
  return out;
}

}  // namespace tandem
