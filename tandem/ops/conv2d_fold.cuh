// Convolutions of images with few channels, brought into a form that tensor cores take. They want channels in
// packs of 16 bytes; an image of three has none. Zeros could fill the pack, but where the stride is 2 the
// four pixels of a 2×2 block are better made channels of one: a 7×7 window at stride 2 over 3 channels
// becomes a 4×4 window at stride 1 over 12, with nearly no zeros.
#pragma once

#include "tandem/ops/conv2d.h"

namespace tandem {

struct Folding {
  Conv2dPlan plan;  // of the folded images and weight
  Conv2dPlan from;
  int factor = 1;      // 2: blocks of 2×2
  YX shift = {0, 0};   // by how many taps the kernel moves to begin at a block
  YX before = {0, 0};  // blocks of zeros before the image
};

// Whether the plan is worth folding: tensor cores are to be used, and its channels do not suit them.
bool wants_folding(const Conv2dPlan& plan);
Folding fold(const Conv2dPlan& plan);

void fold_images(const Folding& folding, std::byte* folded, const std::byte* x, StreamView stream);
void fold_weight(const Folding& folding, std::byte* folded, const std::byte* weight, StreamView stream);
// Back, and into f32.
void unfold_weight(const Folding& folding, std::byte* weight, const std::byte* folded, StreamView stream);

}  // namespace tandem
