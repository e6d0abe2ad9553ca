// Patch whitening (Page 2018): filters of a first convolution, computed from images, whose outputs are
// uncorrelated and of equal size. A network that starts with them need not learn them.
#pragma once

#include "tandem/ops/conv/window.h"
#include "tandem/ops/normalize.h"

namespace tandem {

/// The filters of a convolution (2k, channels, kernel y, kernel x) in f32, on the CPU, for patches of
/// k = channels · kernel y · kernel x values. The first k are the eigenvectors of the patches' second
/// moments, each divided by √(eigenvalue + epsilon), the largest eigenvalue first; the others are their
/// negatives, so that an activation that drops negative values loses nothing. The largest value of an
/// eigenvector is positive. Images are u8 (n, height, width, channels) on the CPU and are normalized as
/// normalize_images() does. The sums are whole numbers, so the result depends neither on their order nor on
/// threads. Throws Error for other images, and for fewer pixels than the kernel has.
Tensor whitening_filters(const Tensor& images, const PixelNorm& norm, YX kernel, double epsilon = 5e-4);

}  // namespace tandem
