// Space-to-depth for convolutions of images with few channels. Tensor cores need channels in packs of 16
// bytes; RGB images have three. Zeros could fill the pack, but at stride 2 it is better to make the four
// pixels of a 2×2 block the channels of one pixel: a 7×7 window at stride 2 over 3 channels becomes a 4×4
// window at stride 1 over 12 channels, with almost no zeros.
#pragma once

#include "tandem/ops/conv/conv2d_kernel.h"

namespace tandem::detail {

struct SpaceToDepth {
  Conv2dPlan plan;  // of the transformed images and weight
  Conv2dPlan original;
  int factor = 1;           // 2: blocks of 2×2 pixels; 1: channels are padded only
  YX tap_shift = {0, 0};    // taps of zeros before the kernel, which align it to a block
  YX zero_blocks = {0, 0};  // blocks of zeros before the image
};

// True where tensor cores may be used and the number of channels prevents it.
bool is_space_to_depth_profitable(const Conv2dPlan& plan);
SpaceToDepth make_space_to_depth(const Conv2dPlan& plan);

void space_to_depth_images(const SpaceToDepth& mapping, std::byte* transformed, const std::byte* x,
                           StreamView stream);
void space_to_depth_weight(const SpaceToDepth& mapping, std::byte* transformed, const std::byte* weight,
                           StreamView stream);
// The inverse for the weight gradient, converted to f32.
void depth_to_space_weight(const SpaceToDepth& mapping, std::byte* weight, const std::byte* transformed,
                           StreamView stream);

}  // namespace tandem::detail
