#include "tandem/ops/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/random_kernel.h"
#include "tandem/ops/random_stream.h"

namespace tandem::detail {

template <>
void random_kernel<Backend::cpu>(const RandomFill& fill, DType dtype, std::byte* out, std::int64_t count,
                                 StreamView) {
  on_distribution(fill, dtype, [&]<class T>(auto functor, T) {
    const std::int64_t blocks = (count + elements_per_block<T> - 1) / elements_per_block<T>;
    parallel_for(blocks, 1 << 10, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block)
        write_random_block(functor, block, reinterpret_cast<T*>(out), count);
    });
  });
}

}  // namespace tandem::detail

namespace tandem {
namespace {

Tensor random_tensor(const Shape& shape, const detail::RandomFill& fill, DType dtype, Device device,
                     const char* op) {
  Tensor out = Tensor::empty(shape, dtype, device);
  if (out.numel() > 0)
    on_backend(device, op, [&]<Backend B>() {
      detail::random_kernel<B>(fill, dtype, out.bytes(), out.numel(), current_stream(device));
    });
  return out;
}

double rounded_to(DType dtype, double value, const char* op) {
  return on_dtype(FloatTypes{}, dtype, op, [&]<class T>() {
    return static_cast<double>(detail::convert<ComputeType<T>>(detail::convert<T>(value)));
  });
}

// The largest value of the dtype below `value`, which the dtype can represent.
double previous(DType dtype, double value) {
  switch (dtype) {
    case DType::f32:
      return static_cast<double>(
          std::nextafter(static_cast<float>(value), -std::numeric_limits<float>::infinity()));
    case DType::bf16: {  // the next f32 below, truncated away from the value
      const float below = std::nextafter(static_cast<float>(value), -std::numeric_limits<float>::infinity());
      const auto bits = std::bit_cast<std::uint32_t>(below);
      return static_cast<double>(std::bit_cast<float>((below < 0 ? bits + 0xffffu : bits) & 0xffff0000u));
    }
    default:
      return std::nextafter(value, -std::numeric_limits<double>::infinity());
  }
}

}  // namespace

Tensor uniform(const Shape& shape, double low, double high, const RandomOptions& options) {
  const detail::RandomStream key = detail::random_stream(options.seed, options.stream);
  detail::RandomFill fill{
      .distribution = detail::Distribution::uniform, .seed = key.seed, .stream = key.stream};
  fill.low = rounded_to(options.dtype, low, "uniform");
  fill.high = rounded_to(options.dtype, high, "uniform");
  check(low <= high && std::isfinite(fill.high - fill.low),
        "[uniform] expected finite low <= high, got {} and {}", low, high);
  fill.max = fill.low == fill.high ? fill.low : std::max(fill.low, previous(options.dtype, fill.high));
  return random_tensor(shape, fill, options.dtype, options.device, "uniform");
}

Tensor normal(const Shape& shape, double mean, double stddev, const RandomOptions& options) {
  check(std::isfinite(mean) && std::isfinite(stddev) && stddev >= 0,
        "[normal] expected a finite mean and a finite stddev of 0 or more, got {} and {}", mean, stddev);
  const detail::RandomStream key = detail::random_stream(options.seed, options.stream);
  const detail::RandomFill fill{.distribution = detail::Distribution::normal,
                                .seed = key.seed,
                                .stream = key.stream,
                                .mean = mean,
                                .stddev = stddev};
  return random_tensor(shape, fill, options.dtype, options.device, "normal");
}

Tensor random_integers(const Shape& shape, std::int64_t low, std::int64_t high,
                       const RandomIntegerOptions& options) {
  check(low < high, "[random_integers] expected low < high, got {} and {}", low, high);
  on_dtype(TypeList<std::uint8_t, std::int32_t, std::int64_t>{}, options.dtype, "random_integers",
           [&]<class T>() {
             using Limits = std::numeric_limits<T>;
             check(low >= std::int64_t{Limits::min()} && high - 1 <= std::int64_t{Limits::max()},
                   "[random_integers] expected bounds that fit {}, got {} and {}", name_of(options.dtype),
                   low, high);
           });
  const detail::RandomStream key = detail::random_stream(options.seed, options.stream);
  const detail::RandomFill fill{
      .distribution = detail::Distribution::integers,
      .seed = key.seed,
      .stream = key.stream,
      .integer_low = low,
      .integer_range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low)};
  return random_tensor(shape, fill, options.dtype, options.device, "random_integers");
}

}  // namespace tandem
