// Random fills from the counter-based generator (core/philox.h). Element i depends on seed, stream and i
// alone, whatever the device, the shape or the number of threads: a 4-byte or smaller element takes word
// i % 4 of block i / 4, an 8-byte one words 2 (i % 2) and 2 (i % 2) + 1 of block i / 2. CPU and CUDA give the
// same bits for uniform and random_integers; normal is computed in f64 and rounded, so it agrees in f32.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "tandem/core/dtype.h"
#include "tandem/core/philox.h"
#include "tandem/device/stream.h"
#include "tandem/ops/elementwise.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

struct RandomOptions {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  // independent numbers for one seed
  DType dtype = DType::f32;
  Device device = cpu_device;
};

// Uniform in [low, high), both rounded to the dtype first; all equal when low == high. f32, f64, bf16.
Tensor uniform(const Shape& shape, double low, double high, const RandomOptions& options = {});

// Normal by Box and Muller: elements 2k and 2k + 1 come from one pair of uniforms. f32, f64, bf16.
Tensor normal(const Shape& shape, double mean, double stddev, const RandomOptions& options = {});

struct RandomIntegerOptions {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  DType dtype = DType::i64;
  Device device = cpu_device;
};

// Uniform in [low, high), which must not be empty and must fit the dtype. u8, i32, i64.
Tensor random_integers(const Shape& shape, std::int64_t low, std::int64_t high,
                       const RandomIntegerOptions& options = {});

enum class Distribution { uniform, normal, integers };

struct Draw {
  Distribution distribution = Distribution::uniform;
  std::uint64_t seed = 0, stream = 0;
  double first = 0, second = 0;  // low and high, or mean and stddev
  double greatest = 0;           // the dtype's last number below high
  std::int64_t low = 0;
  std::uint64_t range = 0;  // high − low
};

template <Backend B>
void random_kernel(const Draw& draw, DType dtype, std::byte* out, std::int64_t count, StreamView stream);

// Elements of type T that one block gives.
template <class T>
inline constexpr int per_block = sizeof(T) == 8 ? 2 : 4;

// The upper 64 bits of a product.
constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
  const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  return a1 * b1 + (middle >> 32) + ((a0 * b1 + (middle & 0xffffffffu)) >> 32);
}

// The functors below turn a block into its elements. Where a product is added to something, fma() says that
// it is rounded once, which would otherwise be each compiler's choice.
template <class T>
struct UniformValues {
  Draw draw;
  constexpr void operator()(const Words4& block, T* values) const {
    const double width = draw.second - draw.first;
    for (int i = 0; i < per_block<T>; ++i) {
      double unit = 0;
      if constexpr (sizeof(T) == 8)
        unit = to_unit_double(block.word[2 * i], block.word[2 * i + 1]);
      else
        unit = static_cast<double>(to_unit_float(block.word[i]));
      const T value = convert<T>(std::fma(unit, width, draw.first));
      const T greatest = convert<T>(draw.greatest);  // rounding may have reached high
      values[i] = convert<ComputeType<T>>(value) > convert<ComputeType<T>>(greatest) ? greatest : value;
    }
  }
};

template <class T>
struct NormalValues {
  Draw draw;
  constexpr void operator()(const Words4& block, T* values) const {
    for (int i = 0; i < per_block<T>; i += 2) {
      double radius_draw = 0, angle_draw = 0;  // the first in (0, 1], for the logarithm
      if constexpr (sizeof(T) == 8) {
        radius_draw = to_unit_double(block.word[0], block.word[1]) + 0x1p-53;
        angle_draw = to_unit_double(block.word[2], block.word[3]);
      } else {
        radius_draw = (static_cast<double>(block.word[i]) + 1) * 0x1p-32;
        angle_draw = static_cast<double>(block.word[i + 1]) * 0x1p-32;
      }
      const double radius = std::sqrt(-2 * std::log(radius_draw));
      const double angle = 6.283185307179586476925 * angle_draw;
      values[i] = convert<T>(std::fma(draw.second, radius * std::cos(angle), draw.first));
      values[i + 1] = convert<T>(std::fma(draw.second, radius * std::sin(angle), draw.first));
    }
  }
};

template <class T>
struct IntegerValues {
  Draw draw;
  constexpr void operator()(const Words4& block, T* values) const {
    for (int i = 0; i < per_block<T>; ++i) {
      std::uint64_t above_low = 0;
      if constexpr (sizeof(T) == 8)
        above_low = multiply_high(std::uint64_t{block.word[2 * i]} << 32 | block.word[2 * i + 1], draw.range);
      else
        above_low = block.word[i] * draw.range >> 32;  // range ≤ 2³²
      values[i] = static_cast<T>(static_cast<std::uint64_t>(draw.low) + above_low);
    }
  }
};

// f(functor, T{}) for the named distribution and dtype.
template <class F>
void on_draw(const Draw& draw, DType dtype, F&& f) {
  switch (draw.distribution) {
    case Distribution::uniform:
      return on_dtype(FloatTypes{}, dtype, "uniform", [&]<class T>() { f(UniformValues<T>{draw}, T{}); });
    case Distribution::normal:
      return on_dtype(FloatTypes{}, dtype, "normal", [&]<class T>() { f(NormalValues<T>{draw}, T{}); });
    case Distribution::integers:
      return on_dtype(TypeList<std::uint8_t, std::int32_t, std::int64_t>{}, dtype, "random_integers",
                      [&]<class T>() { f(IntegerValues<T>{draw}, T{}); });
  }
}

// Block number `block` of `count` elements; the last one may be cut short.
template <class T, class F>
constexpr void write_block(const F& f, std::int64_t block, T* out, std::int64_t count) {
  const Words4 words = random_block(f.draw.seed, f.draw.stream, static_cast<std::uint64_t>(block));
  T values[per_block<T>];
  f(words, values);
  const std::int64_t first = block * per_block<T>;
  const std::int64_t present = count - first < per_block<T> ? count - first : per_block<T>;
  for (int i = 0; i < present; ++i) out[first + i] = values[i];
}

}  // namespace tandem
