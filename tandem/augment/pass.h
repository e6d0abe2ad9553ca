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

// The key of operation i's draws.
inline DrawKey key_of(const PassWork& work, int i) {
  DrawKey key = work.key;
  key.operation = static_cast<std::uint32_t>(i);
  return key;
}

void run_pass(const PassWork& work, AugmentScratch& scratch);

// Its parts, which the fast path shares. All but the noise:
void move_and_rotate(const PassWork& work, AugmentScratch& scratch);
// The source of the pass's rotation: `in`, or `in` after the moves before the rotation, in the scratch.
const std::uint8_t* moved_source(const PassWork& work, AugmentScratch& scratch);

}  // namespace tandem
