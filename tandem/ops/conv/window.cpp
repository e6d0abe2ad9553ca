#include "tandem/ops/conv/window_kernel.h"

#include "tandem/core/check.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {

YX window_output_size(const char* op, YX size, YX kernel, const Window& window) {
  check(kernel.y > 0 && kernel.x > 0 && window.stride.y > 0 && window.stride.x > 0 && window.dilation.y > 0 &&
            window.dilation.x > 0 && window.padding.y >= 0 && window.padding.x >= 0,
        "[{}] expected a kernel, a stride and a dilation of at least 1 and a padding of at least 0, got "
        "kernel {}x{}, stride {}x{}, dilation {}x{}, padding {}x{}",
        op, kernel.y, kernel.x, window.stride.y, window.stride.x, window.dilation.y, window.dilation.x,
        window.padding.y, window.padding.x);
  constexpr std::int64_t max_size = std::int64_t{1} << 30;  // keeps the arithmetic below from overflowing
  for (const YX& each : {size, kernel, window.stride, window.padding, window.dilation})
    check(each.y <= max_size && each.x <= max_size, "[{}] expected sizes of at most {}, got {}x{}", op,
          max_size, each.y, each.x);
  // The kernel's extent with its dilation, and how far it can slide.
  const std::int64_t extent_y = window.dilation.y * (kernel.y - 1) + 1;
  const std::int64_t extent_x = window.dilation.x * (kernel.x - 1) + 1;
  const std::int64_t slack_y = size.y + 2 * window.padding.y - extent_y;
  const std::int64_t slack_x = size.x + 2 * window.padding.x - extent_x;
  check(slack_y >= 0 && slack_x >= 0, "[{}] expected images of at least {}x{}, got {}x{}", op,
        extent_y - 2 * window.padding.y, extent_x - 2 * window.padding.x, size.y, size.x);
  return {slack_y / window.stride.y + 1, slack_x / window.stride.x + 1};
}

void trace_window(const Window& window) {
  trace_option("stride", Dims{window.stride.y, window.stride.x});
  trace_option("padding", Dims{window.padding.y, window.padding.x});
  trace_option("dilation", Dims{window.dilation.y, window.dilation.x});
}

}  // namespace tandem::detail
