// Convolution of few images in bf16 on Hopper: where the result has too few tiles for all multiprocessors,
// the blocks of a cluster share the sum of a tile. Made for latency.
#pragma once

#include "tandem/ops/conv/conv2d_kernel.h"

namespace tandem::detail {

bool is_cluster_conv_applicable(const Conv2dPlan& original, Device device);

// How a result is cut: a block has 64 filters of `pixels` pixels, and the sum is shared by `splits` blocks:
// 16 and 1, or 32 and 1, 2, 4 or 8.
struct ClusterTile {
  int pixels, splits;
};
ClusterTile choose_cluster_tile(const Conv2dPlan& plan, int multiprocessors);

// Parameters as for small_conv2d(). False, without a result, where the driver cannot describe the images.
bool cluster_conv2d(const Conv2dPlan& original, const ClusterTile& tile, std::byte* y, const std::byte* x,
                    const std::byte* weight, const Conv2dEpilogue& epilogue, bool settled, StreamView stream);

}  // namespace tandem::detail
