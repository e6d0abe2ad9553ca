// Kernel and functors of the random fills (random.h).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "tandem/core/dtype.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/philox.h"
#include "tandem/device/stream.h"
#include "tandem/ops/elementwise.h"

namespace tandem::detail {

enum class Distribution { uniform, normal, integers };

// The distribution of a fill and its position in the generator.
struct RandomFill {
  Distribution distribution = Distribution::uniform;
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  double low = 0;   // uniform
  double high = 0;  // uniform
  double max = 0;   // uniform: the largest value of the dtype below high
  double mean = 0;
  double stddev = 0;
  std::int64_t integer_low = 0;
  std::uint64_t integer_range = 0;  // high − low
};

template <Backend B>
void random_kernel(const RandomFill& fill, DType dtype, std::byte* out, std::int64_t count,
                   StreamView stream);

// Elements of type T generated from one Philox block.
template <class T>
inline constexpr int elements_per_block = sizeof(T) == 8 ? 2 : 4;

// The upper 64 bits of a product.
constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
  const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  return a1 * b1 + (middle >> 32) + ((a0 * b1 + (middle & 0xffffffffu)) >> 32);
}

// The functors below convert a block to its elements. Explicit fma() makes products with an addition round
// once on every compiler, which may otherwise contract them or not.
template <class T>
struct UniformValues {
  RandomFill fill;
  constexpr void operator()(const Words4& block, T* values) const {
    const double width = fill.high - fill.low;
    for (int i = 0; i < elements_per_block<T>; ++i) {
      double unit = 0;
      if constexpr (sizeof(T) == 8)
        unit = to_unit_double(block.word[2 * i], block.word[2 * i + 1]);
      else
        unit = static_cast<double>(to_unit_float(block.word[i]));
      const T value = convert<T>(std::fma(unit, width, fill.low));
      const T max = convert<T>(fill.max);  // rounding may have reached high
      values[i] = convert<ComputeType<T>>(value) > convert<ComputeType<T>>(max) ? max : value;
    }
  }
};

template <class T>
struct NormalValues {
  RandomFill fill;
  constexpr void operator()(const Words4& block, T* values) const {
    for (int i = 0; i < elements_per_block<T>; i += 2) {
      double radius_unit = 0, angle_unit = 0;  // radius_unit is in (0, 1], for the logarithm
      if constexpr (sizeof(T) == 8) {
        radius_unit = to_unit_double(block.word[0], block.word[1]) + 0x1p-53;
        angle_unit = to_unit_double(block.word[2], block.word[3]);
      } else {
        radius_unit = (static_cast<double>(block.word[i]) + 1) * 0x1p-32;
        angle_unit = static_cast<double>(block.word[i + 1]) * 0x1p-32;
      }
      const double radius = std::sqrt(-2 * std::log(radius_unit));
      const double angle = 6.283185307179586476925 * angle_unit;
      values[i] = convert<T>(std::fma(fill.stddev, radius * std::cos(angle), fill.mean));
      values[i + 1] = convert<T>(std::fma(fill.stddev, radius * std::sin(angle), fill.mean));
    }
  }
};

template <class T>
struct IntegerValues {
  RandomFill fill;
  constexpr void operator()(const Words4& block, T* values) const {
    for (int i = 0; i < elements_per_block<T>; ++i) {
      std::uint64_t above_low = 0;
      if constexpr (sizeof(T) == 8)
        above_low =
            multiply_high(std::uint64_t{block.word[2 * i]} << 32 | block.word[2 * i + 1], fill.integer_range);
      else
        above_low = block.word[i] * fill.integer_range >> 32;  // range ≤ 2³²
      values[i] = static_cast<T>(static_cast<std::uint64_t>(fill.integer_low) + above_low);
    }
  }
};

// Calls f(functor, T{}) for the distribution and dtype.
template <class F>
void on_distribution(const RandomFill& fill, DType dtype, F&& f) {
  switch (fill.distribution) {
    case Distribution::uniform:
      return on_dtype(FloatTypes{}, dtype, "uniform", [&]<class T>() { f(UniformValues<T>{fill}, T{}); });
    case Distribution::normal:
      return on_dtype(FloatTypes{}, dtype, "normal", [&]<class T>() { f(NormalValues<T>{fill}, T{}); });
    case Distribution::integers:
      return on_dtype(TypeList<std::uint8_t, std::int32_t, std::int64_t>{}, dtype, "random_integers",
                      [&]<class T>() { f(IntegerValues<T>{fill}, T{}); });
  }
}

// Writes the elements of Philox block `block`; the last block of `count` elements may be partial.
template <class T, class F>
constexpr void write_random_block(const F& f, std::int64_t block, T* out, std::int64_t count) {
  const Words4 words = random_block(f.fill.seed, f.fill.stream, static_cast<std::uint64_t>(block));
  T values[elements_per_block<T>];
  f(words, values);
  const std::int64_t first = block * elements_per_block<T>;
  const std::int64_t present = count - first < elements_per_block<T> ? count - first : elements_per_block<T>;
  for (int i = 0; i < present; ++i) out[first + i] = values[i];
}

}  // namespace tandem::detail
