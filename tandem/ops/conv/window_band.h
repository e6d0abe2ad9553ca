// The images of a convolution as the left factor of a product, without a copy per window. A band is a few
// padded lines of the images, in which the windows of consecutive output pixels begin a constant distance
// apart, across the ends of lines and images too: the padding on the right of a line is that on the left of
// the next, and the padding below an image that above the next. The price is a few positions between the
// lines whose sums are not used. Lines are sorted by their remainder modulo the stride, into planes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "tandem/ops/conv/conv2d_kernel.h"
#include "tandem/ops/product_tile.h"

namespace tandem::detail {

// A window's elements in the order of the weight: segments that are contiguous in a line of the images, each
// padded to whole steps of the product.
struct WindowSegments {
  std::int64_t count;
  std::int64_t elements;
};
inline WindowSegments segments_of(const Conv2dPlan& plan) {
  if (plan.window.dilation.x == 1) return {plan.kernel.y, plan.kernel.x * plan.channels};
  return {plan.kernel.y * plan.kernel.x, plan.channels};
}

struct BandLayout {
  std::int64_t line_multiple = 1;  // the length of a line in bytes is one of these
  std::int64_t image_step = 1;     // of every so many images, the first alone is in the band
};

class WindowBand {
 public:
  WindowBand(const Conv2dPlan& plan, std::int64_t element_bytes, std::uint8_t padding_value,
             BandLayout layout = {})
      : plan_(plan),
        layout_(layout),
        pixel_bytes_(plan.channels * element_bytes),
        line_pixels_(round_up(padded_size(plan.in.x, plan.out.x, plan.kernel.x, plan.window.padding.x,
                                          plan.window.dilation.x, plan.window.stride.x),
                              std::lcm(plan.window.stride.x,
                                       layout.line_multiple / std::gcd(layout.line_multiple, pixel_bytes_)))),
        image_lines_(padded_size(plan.in.y, plan.out.y, plan.kernel.y, plan.window.padding.y,
                                 plan.window.dilation.y, plan.window.stride.y)),
        padding_value_(padding_value) {}

  // The output pixels lie in lines of this many positions; an image has so many lines.
  std::int64_t out_line() const { return line_pixels_ / plan_.window.stride.x; }
  std::int64_t out_lines() const { return image_lines_ / plan_.window.stride.y; }
  std::int64_t positions() const { return plan_.images * out_lines() * out_line(); }
  // Between the windows of consecutive positions, in bytes.
  std::int64_t row_stride() const { return plan_.window.stride.x * pixel_bytes_; }

  // Every position has a window that is a pixel of the images, so that no band is needed.
  bool is_identity() const {
    return plan_.kernel == YX{1, 1} && plan_.window.stride == YX{1, 1} && plan_.window.padding == YX{0, 0} &&
           plan_.out == plan_.in;
  }

  // The lines of a plane for the windows of `lines` lines of positions, and the size of a band of them, with
  // `slack` bytes that may be read behind it.
  std::int64_t plane_lines(std::int64_t lines) const {
    return lines + (plan_.kernel.y - 1) * plan_.window.dilation.y / plan_.window.stride.y + 1;
  }
  std::int64_t line_bytes() const { return line_pixels_ * pixel_bytes_; }
  std::int64_t planes() const { return plan_.window.stride.y; }

  // The offset of a segment from the beginning of a window in a band with this many lines per plane.
  std::int64_t segment_offset(std::int64_t segment, std::int64_t lines_of_plane) const {
    const bool whole_lines = plan_.window.dilation.x == 1;
    const std::int64_t ky = whole_lines ? segment : segment / plan_.kernel.x,
                       kx = whole_lines ? 0 : segment % plan_.kernel.x;
    const std::int64_t line = ky * plan_.window.dilation.y, stride = plan_.window.stride.y;
    return (line % stride * lines_of_plane + line / stride) * line_bytes() +
           kx * plan_.window.dilation.x * pixel_bytes_;
  }

  // Writes the planes for the lines of positions from `first` on, `count` lines of each. Those of
  // plane_lines() have one more than windows need, for what is read behind a window.
  void copy(std::byte* band, const std::byte* x, std::int64_t first, std::int64_t lines_of_plane,
            std::int64_t count) const {
    for (std::int64_t plane = 0; plane < planes(); ++plane) {
      std::byte* to = band + plane * lines_of_plane * line_bytes();
      if (!is_plane_used(plane)) continue;
      for (std::int64_t line = 0; line < count; ++line, to += line_bytes())
        copy_line(to, x, (first + line) * plan_.window.stride.y + plane);
    }
  }

 private:
  // Pixels of a line with the padding that it shares with the next line: the wider of both sides.
  static std::int64_t padded_size(std::int64_t in, std::int64_t out, std::int64_t kernel,
                                  std::int64_t padding, std::int64_t dilation, std::int64_t stride) {
    const std::int64_t right = (out - 1) * stride + (kernel - 1) * dilation - padding - (in - 1);
    return round_up(std::max(in + std::max({padding, right, std::int64_t{0}}), out * stride), stride);
  }

  bool is_plane_used(std::int64_t plane) const {
    for (std::int64_t ky = 0; ky < plan_.kernel.y; ++ky)
      if (ky * plan_.window.dilation.y % plan_.window.stride.y == plane) return true;
    return false;
  }

  void copy_line(std::byte* to, const std::byte* x, std::int64_t padded_line) const {
    const std::int64_t image = padded_line / image_lines_,
                       y = padded_line % image_lines_ - plan_.window.padding.y;
    if (image >= plan_.images || y < 0 || y >= plan_.in.y) return fill(to, line_bytes());
    const std::int64_t left = plan_.window.padding.x * pixel_bytes_, bytes = plan_.in.x * pixel_bytes_;
    fill(to, left);
    const std::int64_t line = image * layout_.image_step * plan_.in.y + y;
    std::memcpy(to + left, x + line * bytes, static_cast<std::size_t>(bytes));
    fill(to + left + bytes, line_bytes() - left - bytes);
  }

  void fill(std::byte* to, std::int64_t count) const {
    std::memset(to, padding_value_, static_cast<std::size_t>(count));
  }

  const Conv2dPlan& plan_;
  BandLayout layout_;
  std::int64_t pixel_bytes_;
  std::int64_t line_pixels_;  // with padding
  std::int64_t image_lines_;  // with padding
  std::uint8_t padding_value_;
};

}  // namespace tandem::detail
