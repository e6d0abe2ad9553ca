// Random tensors from the counter-based Philox generator. Element i depends only on seed, stream and i, not
// on the device, the shape or the number of threads: an element of up to 4 bytes uses word i % 4 of block
// i / 4, an 8-byte one words 2 (i % 2) and 2 (i % 2) + 1 of block i / 2. CPU and CUDA give the same bits for
// uniform and random_integers; normal is computed in f64 and rounded, so it agrees in f32.
#pragma once

#include <cstdint>
#include <optional>

#include "tandem/tensor/tensor.h"

namespace tandem {

/// Sets the seed for random numbers that are sampled without a seed or a stream, and starts their streams
/// anew: the same calls in the same order then give the same values. The seed is 0 when the program starts.
/// Thread-safe; which thread gets which stream depends on the order of their calls.
void manual_seed(std::uint64_t seed);

/// Options of uniform() and normal(). Without a seed and a stream, every call gets a stream of its own, which
/// no explicit stream below 2⁶³ shares. If one of them is given, the other is 0 by default.
struct RandomOptions {
  std::optional<std::uint64_t> seed = {};
  std::optional<std::uint64_t> stream = {};  ///< streams of one seed are independent
  DType dtype = DType::f32;
  Device device = cpu_device;
};

/// Uniform in [low, high), where both are first rounded to the dtype; constant if low == high. f32, f64 or
/// bf16. Throws Error unless low <= high and both are finite.
Tensor uniform(const Shape& shape, double low = 0, double high = 1, const RandomOptions& options = {});

/// Normally distributed, by the Box-Muller transform: elements 2k and 2k + 1 use one pair of uniform numbers.
/// f32, f64 or bf16. Throws Error unless mean and stddev are finite and stddev >= 0.
Tensor normal(const Shape& shape, double mean = 0, double stddev = 1, const RandomOptions& options = {});

/// Options of random_integers(); seed and stream as in RandomOptions.
struct RandomIntegerOptions {
  std::optional<std::uint64_t> seed = {};
  std::optional<std::uint64_t> stream = {};
  DType dtype = DType::i64;
  Device device = cpu_device;
};

/// Uniform integers in [low, high). u8, i32 or i64. Throws Error unless low < high and the dtype holds every
/// value of the range.
Tensor random_integers(const Shape& shape, std::int64_t low, std::int64_t high,
                       const RandomIntegerOptions& options = {});

}  // namespace tandem
