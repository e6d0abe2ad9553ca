// One pass of a recipe over an image (draw.h says what a pass is), for any size and any number of channels.
// What the fast path for small images comes to is defined by this one.
#pragma once

#include <cstdint>

#include "tandem/augment/augment.h"

namespace tandem {

struct PassWork {
  AugmentPass pass;
  const DrawnStep* steps = nullptr;  // of the whole recipe
  ImageSize size;
  DrawKey key;  // without the operation
  const std::uint8_t* in = nullptr;
  std::uint8_t* out = nullptr;  // apart from `in`
};

void run_pass(const PassWork& work, AugmentScratch& scratch);

// Its parts, which the fast path shares. Shifts and skews from one image to another:
void move_rows(const DrawnStep* moves, int count, const ImageSize& size, const std::uint8_t* in,
               std::uint8_t* out);
// The pass's source for its rotation: `in`, or the moved image in the scratch.
const std::uint8_t* moved_source(const PassWork& work, AugmentScratch& scratch);

}  // namespace tandem
