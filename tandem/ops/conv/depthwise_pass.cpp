#include "tandem/ops/conv/depthwise_pass.h"

#include <algorithm>
#include <utility>

namespace tandem::detail {

DepthwisePass forward_pass(const Conv2dPlan& plan) {
  DepthwisePass pass{.images = plan.images,
                     .channels = plan.channels,
                     .weight_channels = plan.channels,
                     .source = plan.in,
                     .target = plan.out,
                     .grid = plan.out,
                     .step = plan.window.stride,
                     .first = {0, 0},
                     .target_step = {1, 1},
                     .taps = {}};
  for (std::int64_t ky = 0; ky < plan.kernel.y; ++ky)
    for (std::int64_t kx = 0; kx < plan.kernel.x; ++kx)
      pass.taps.push_back({{ky * plan.window.dilation.y - plan.window.padding.y,
                            kx * plan.window.dilation.x - plan.window.padding.x},
                           ky * plan.kernel.x + kx});
  return pass;
}

RecycledVector<DepthwisePass> input_gradient_passes(const Conv2dPlan& plan) {
  RecycledVector<DepthwisePass> passes;
  const YX stride = plan.window.stride;
  for (std::int64_t first_y = 0; first_y < std::min(stride.y, plan.in.y); ++first_y)
    for (std::int64_t first_x = 0; first_x < std::min(stride.x, plan.in.x); ++first_x) {
      DepthwisePass pass{
          .images = plan.images,
          .channels = plan.channels,
          .weight_channels = plan.channels,
          .source = plan.out,
          .target = plan.in,
          .grid = {ceil_div(plan.in.y - first_y, stride.y), ceil_div(plan.in.x - first_x, stride.x)},
          .step = {1, 1},
          .first = {first_y, first_x},
          .target_step = stride,
          .taps = {}};
      for (std::int64_t ky = 0; ky < plan.kernel.y; ++ky)
        for (std::int64_t kx = 0; kx < plan.kernel.x; ++kx) {
          const std::int64_t y = first_y + plan.window.padding.y - ky * plan.window.dilation.y;
          const std::int64_t x = first_x + plan.window.padding.x - kx * plan.window.dilation.x;
          if (y % stride.y == 0 && x % stride.x == 0)
            pass.taps.push_back({{y / stride.y, x / stride.x}, ky * plan.kernel.x + kx});
        }
      passes.push_back(std::move(pass));
    }
  return passes;
}

}  // namespace tandem::detail
