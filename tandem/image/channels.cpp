#include "tandem/image/channels.h"

#include <utility>

#include "tandem/core/check.h"

namespace tandem {
namespace {

template <int from, int to>
void convert_row(uint8_t* out, const uint8_t* in, int64_t pixels) {
  for (int64_t x = 0; x < pixels; ++x, in += from, out += to) {
    if constexpr (from == 1)
      out[0] = out[1] = out[2] = in[0];
    else if constexpr (to == 1)
      out[0] = uint8_t((19595u * in[0] + 38470u * in[1] + 7471u * in[2] + 0x8000u) >> 16);
    else
      out[0] = in[0], out[1] = in[1], out[2] = in[2];
  }
}

}  // namespace

ImageView with_channels(const ImageView& view, int channels, Image& memory) {
  expect(channels == 1 || channels == 3);
  check(view.channels == 1 || view.channels == 3 || view.channels == 4,
        "[image] expected 1, 3 or 4 channels, got {}", view.channels);
  if (view.channels == channels) return view;
  memory = make_image(view.height, view.width, channels, std::move(memory));
  const auto convert = view.channels == 1   ? convert_row<1, 3>
                       : channels == 3      ? convert_row<4, 3>
                       : view.channels == 3 ? convert_row<3, 1>
                                            : convert_row<4, 1>;
  for (int64_t y = 0; y < view.height; ++y) convert(memory.row(y), view.row(y), view.width);
  return memory;
}

}  // namespace tandem
