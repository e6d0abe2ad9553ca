#include "tandem/image/resize_area.h"

#include <algorithm>
#include <cmath>

#include "tandem/core/check.h"

namespace tandem {
namespace {

// Calls visit(source, weight) for the source pixels that output pixel `i` of `to` covers; the weights sum
// to 1.
template <class Visit>
void for_each_covered(int64_t i, int64_t from, int64_t to, const Visit& visit) {
  const double ratio = double(from) / double(to);
  const double begin = double(i) * ratio, end = double(i + 1) * ratio;
  const int64_t first = std::min(int64_t(begin), from - 1);
  const int64_t last = std::clamp(int64_t(std::ceil(end)) - 1, first, from - 1);
  for (int64_t k = first; k <= last; ++k) {
    const double part = std::min(end, double(k + 1)) - std::max(begin, double(k));
    visit(k, std::max(part, 0.0) / ratio);
  }
}

}  // namespace

void resize_area_into(const ImageView& image, int64_t height, int64_t width, uint8_t* out,
                      std::vector<double>& row) {
  check(image.height > 0 && image.width > 0 && height > 0 && width > 0,
        "[resize_area] expected sides of at least 1, got {}x{} to {}x{}", image.width, image.height, width,
        height);
  row.resize(size_t(image.width * image.channels));  // the mean of the source rows that an output row covers
  for (int64_t y = 0; y < height; ++y) {
    std::ranges::fill(row, 0.0);
    for_each_covered(y, image.height, height, [&](int64_t k, double weight) {
      const uint8_t* in = image.row(k);
      for (size_t i = 0; i < row.size(); ++i) row[i] += weight * double(in[i]);
    });
    for (int64_t x = 0; x < width; ++x) {
      double sum[3] = {};
      for_each_covered(x, image.width, width, [&](int64_t k, double weight) {
        for (int c = 0; c < image.channels; ++c) sum[c] += weight * row[size_t(k * image.channels + c)];
      });
      for (int c = 0; c < image.channels; ++c)
        *out++ = uint8_t(std::clamp(sum[c] + area_rounding, 0.0, 255.0));
    }
  }
}

Image resize_area(const Image& image, int64_t height, int64_t width) {
  Image out = make_image(std::max<int64_t>(height, 0), std::max<int64_t>(width, 0), image.channels);
  std::vector<double> row;
  resize_area_into(image, height, width, out.pixels.data(), row);
  return out;
}

Image shrink_to_side(const Image& image, int64_t max_side) {
  const double ratio =
      static_cast<double>(max_side) / static_cast<double>(std::max(image.height, image.width));
  if (ratio >= 1) return image;
  const auto side = [&](int64_t length) {
    return std::max<int64_t>(1, std::llround(static_cast<double>(length) * ratio));
  };
  return resize_area(image, side(image.height), side(image.width));
}

}  // namespace tandem
