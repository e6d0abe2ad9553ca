// Cubic B-spline interpolation as SciPy does it (ndimage, order 3, mode "constant"): coefficients by a
// recursive filter whose image is mirrored at its borders, then a sum over 4×4 of them.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "tandem/augment/draw.h"

namespace tandem {

// Turns an image's values (height, width, channels) into the coefficients of its spline, in place.
void spline_coefficients(float* image, const ImageSize& size);
void spline_coefficients(double* image, const ImageSize& size);

// Along one axis: which four coefficients, and how much of each.
template <class T>
struct SplineTaps {
  int index[4];
  T weight[4];
};

// At a coordinate within 0 … size − 1.
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

// `coefficients` points at the channel wanted.
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

}  // namespace tandem
