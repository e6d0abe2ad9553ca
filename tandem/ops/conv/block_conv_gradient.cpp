#include <algorithm>
#include <cstring>

#include "tandem/core/parallel.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/conv/block_conv.h"
#include "tandem/ops/conv/transpose_words.h"

namespace tandem::detail {
namespace {

// Along one axis, the kernel elements that reach the input positions with remainder `phase` modulo the
// stride: first, first + stride, … They form a convolution of dy with stride 1.
struct Phase {
  std::int64_t phase, first, count, padding, size;
};
Phase phase_of(std::int64_t phase, std::int64_t in, std::int64_t kernel, std::int64_t padding,
               std::int64_t stride) {
  const std::int64_t first = (phase + padding) % stride,
                     count = kernel > first ? ceil_div(kernel - first, stride) : 0;
  return {phase, first, count, count - 1 - (phase + padding) / stride, ceil_div(in - phase, stride)};
}
Phase vertical_phase(const Conv2dPlan& plan, std::int64_t phase) {
  return phase_of(phase, plan.in.y, plan.kernel.y, plan.window.padding.y, plan.window.stride.y);
}
Phase horizontal_phase(const Conv2dPlan& plan, std::int64_t phase) {
  return phase_of(phase, plan.in.x, plan.kernel.x, plan.window.padding.x, plan.window.stride.x);
}

// (filters, kernel y, kernel x, channels) → (channels, y.count, x.count, filters), flipped.
void flip_weight(const Conv2dPlan& plan, const Phase& y, const Phase& x, Word* to, const Word* weight) {
  constexpr std::int64_t grain = 32;  // channels
  const std::int64_t taps = y.count * x.count, filter_size = plan.kernel.y * plan.kernel.x * plan.channels;
  parallel_for(plan.channels, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = 0; t < taps; ++t) {
      const std::int64_t ky = y.first + (y.count - 1 - t / x.count) * plan.window.stride.y,
                         kx = x.first + (x.count - 1 - t % x.count) * plan.window.stride.x;
      transpose({.data = weight + (ky * plan.kernel.x + kx) * plan.channels + begin,
                 .stride = filter_size,
                 .rows = plan.filters,
                 .columns = end - begin},
                to + (begin * taps + t) * plan.filters, taps * plan.filters);
    }
  });
}

}  // namespace

bool has_block_gradients(const Conv2dPlan& plan) {
  if (!uses_block_conv(plan) || plan.window.dilation != YX{1, 1}) return false;
  for (std::int64_t y = 0; y < std::min(plan.window.stride.y, plan.in.y); ++y)
    if (const Phase phase = vertical_phase(plan, y); phase.count > 0 && phase.padding < 0) return false;
  for (std::int64_t x = 0; x < std::min(plan.window.stride.x, plan.in.x); ++x)
    if (const Phase phase = horizontal_phase(plan, x); phase.count > 0 && phase.padding < 0) return false;
  return true;
}

void block_input_gradient(const Conv2dPlan& plan, MatrixIsa isa, std::byte* dx, const std::byte* dy,
                          const std::byte* weight) {
  const Conv2dSizes sizes = sizes_of(plan);
  // Input pixels between the windows have no gradient.
  if (plan.kernel.y < plan.window.stride.y || plan.kernel.x < plan.window.stride.x)
    std::memset(dx, 0, static_cast<std::size_t>(sizes.x) * sizeof(Word));
  const Buffer flipped = make_scratch<Word>(sizes.weight);
  for (std::int64_t py = 0; py < std::min(plan.window.stride.y, plan.in.y); ++py)
    for (std::int64_t px = 0; px < std::min(plan.window.stride.x, plan.in.x); ++px) {
      const Phase y = vertical_phase(plan, py), x = horizontal_phase(plan, px);
      if (y.count == 0 || x.count == 0) continue;
      flip_weight(plan, y, x, as<Word>(flipped), reinterpret_cast<const Word*>(weight));
      const Conv2dPlan phase{.images = plan.images,
                             .channels = plan.filters,
                             .filters = plan.channels,
                             .in = plan.out,
                             .kernel = {y.count, x.count},
                             .out = {y.size, x.size},
                             .window = {.padding = {y.padding, x.padding}},
                             .dtype = DType::bf16};
      const Buffer packed = make_scratch<std::byte>(block_conv_weight_bytes(phase, MatrixType::bf16));
      pack_block_conv_weight(phase, MatrixType::bf16, packed.data(), flipped.data());
      block_conv2d({.plan = phase,
                    .isa = isa,
                    .x = dy,
                    .packed = packed.data(),
                    .y = dx,
                    .grid = {.size = plan.in, .first = {py, px}, .step = plan.window.stride}});
    }
}

}  // namespace tandem::detail
