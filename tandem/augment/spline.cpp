#include "tandem/augment/spline.h"

#include <cmath>

namespace tandem::detail {
namespace {

// Filters one line of `count` values that are `step` apart (Unser 1999, with SciPy's exact initial value for
// a mirrored line).
template <class T>
void filter_line(T* line, std::int64_t count, std::int64_t step) {
  if (count < 2) return;
  const T pole = static_cast<T>(std::sqrt(3.0) - 2);
  const auto at = [&](std::int64_t i) -> T& { return line[i * step]; };
  for (std::int64_t i = 0; i < count; ++i) at(i) *= 6;
  const T last_power = std::pow(pole, static_cast<T>(count - 1));
  T power = pole, start = at(0) + last_power * at(count - 1);
  for (std::int64_t i = 1; i < count - 1; ++i, power *= pole)
    start += power * (at(i) + last_power * at(count - 1 - i));
  at(0) = start / (1 - last_power * last_power);
  for (std::int64_t i = 1; i < count; ++i) at(i) += pole * at(i - 1);
  at(count - 1) = (pole * at(count - 2) + at(count - 1)) * pole / (pole * pole - 1);
  for (std::int64_t i = count - 2; i >= 0; --i) at(i) = pole * (at(i + 1) - at(i));
}

template <class T>
void filter_image(T* image, const ImageSize& size) {
  const std::int64_t row = std::int64_t{size.width} * size.channels;
  for (std::int64_t i = 0; i < row; ++i) filter_line(image + i, size.height, row);
  for (int y = 0; y < size.height; ++y)
    for (int c = 0; c < size.channels; ++c) filter_line(image + y * row + c, size.width, size.channels);
}

}  // namespace

void spline_coefficients(float* image, const ImageSize& size) {
  filter_image(image, size);
}

void spline_coefficients(double* image, const ImageSize& size) {
  filter_image(image, size);
}

}  // namespace tandem::detail
