#include "tandem/ops/window.h"

#include "tandem/core/check.h"

namespace tandem {

YX window_places(const char* op, YX size, YX kernel, const Window& window) {
  check(kernel.y > 0 && kernel.x > 0 && window.stride.y > 0 && window.stride.x > 0 && window.dilation.y > 0 &&
            window.dilation.x > 0 && window.padding.y >= 0 && window.padding.x >= 0,
        "[{}] expected a kernel, a stride and a dilation of at least 1 and a padding of at least 0, got "
        "kernel {}x{}, "
        "stride {}x{}, dilation {}x{}, padding {}x{}",
        op, kernel.y, kernel.x, window.stride.y, window.stride.x, window.dilation.y, window.dilation.x,
        window.padding.y, window.padding.x);
  constexpr std::int64_t most = std::int64_t{1} << 30;  // nothing below can overflow then
  for (const YX& each : {size, kernel, window.stride, window.padding, window.dilation})
    check(each.y <= most && each.x <= most, "[{}] expected sizes of at most {}, got {}x{}", op, most, each.y,
          each.x);
  const std::int64_t reach_y = window.dilation.y * (kernel.y - 1) + 1;
  const std::int64_t reach_x = window.dilation.x * (kernel.x - 1) + 1;
  const std::int64_t room_y = size.y + 2 * window.padding.y - reach_y;
  const std::int64_t room_x = size.x + 2 * window.padding.x - reach_x;
  check(room_y >= 0 && room_x >= 0, "[{}] expected images of at least {}x{}, got {}x{}", op,
        reach_y - 2 * window.padding.y, reach_x - 2 * window.padding.x, size.y, size.x);
  return {room_y / window.stride.y + 1, room_x / window.stride.x + 1};
}

}  // namespace tandem
