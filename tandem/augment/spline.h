// Cubic B-spline interpolation as in SciPy (ndimage, order 3, mode "constant"): a recursive filter, mirrored
// at the borders, gives the coefficients; a weighted sum of 4×4 of them gives a value.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "tandem/image/image.h"

namespace tandem::detail {

// Replaces the values of an image (height, width, channels) by the coefficients of its spline.
void spline_coefficients(float* image, const ImageSize& size);
void spline_coefficients(double* image, const ImageSize& size);

// The indices and weights of the four coefficients along one axis.
template <class T>
struct SplineTaps {
  int index[4];
  T weight[4];
};

// The taps at a coordinate within 0 … size − 1.
template <class T>
SplineTaps<T> spline_taps(double at, int size) {
  const int first = static_cast<int>(at);
  const double t = at - first, u = 1 - t;
  SplineTaps<T> taps{{first - 1, first, first + 1, first + 2},
                     {static_cast<T>(u * u * u / 6), static_cast<T>((t * t * (t - 2) * 3 + 4) / 6),
                      static_cast<T>((u * u * (u - 2) * 3 + 4) / 6), static_cast<T>(t * t * t / 6)}};
  for (int& index : taps.index) {
    index = size == 1 ? 0 : std::abs(index);
    if (index >= size) index = std::abs(2 * (size - 1) - index);
  }
  return taps;
}

// `coefficients` points to the requested channel.
template <class T>
T spline_value(const T* coefficients, int width, int channels, const SplineTaps<T>& across,
               const SplineTaps<T>& down) {
  T sum = 0;
  for (int i = 0; i < 4; ++i) {
    const T* const row = coefficients + std::int64_t{down.index[i]} * width * channels;
    T in_row = 0;
    for (int j = 0; j < 4; ++j) in_row += across.weight[j] * row[std::int64_t{across.index[j]} * channels];
    sum += down.weight[i] * in_row;
  }
  return sum;
}

}  // namespace tandem::detail
