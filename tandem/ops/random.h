// Random tensors from the counter-based Philox generator. Element i depends only on seed, stream and i, not
// on the device, the shape or the number of threads: an element of up to 4 bytes uses word i % 4 of block
// i / 4, an 8-byte one words 2 (i % 2) and 2 (i % 2) + 1 of block i / 2. CPU and CUDA give the same bits for
// uniform and random_integers; normal is computed in f64 and rounded, so it agrees in f32.
#pragma once

#include <cstdint>

#include "tandem/tensor/tensor.h"

namespace tandem {

/// Options of uniform() and normal().
struct RandomOptions {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  ///< streams of one seed are independent
  DType dtype = DType::f32;
  Device device = cpu_device;
};

/// Uniform in [low, high), where both are first rounded to the dtype; constant if low == high. f32, f64 or
/// bf16. Throws Error unless low <= high and both are finite.
Tensor uniform(const Shape& shape, double low, double high, const RandomOptions& options = {});

/// Normally distributed, by the Box-Muller transform: elements 2k and 2k + 1 use one pair of uniform numbers.
/// f32, f64 or bf16. Throws Error unless mean and stddev are finite and stddev >= 0.
Tensor normal(const Shape& shape, double mean, double stddev, const RandomOptions& options = {});

/// Options of random_integers().
struct RandomIntegerOptions {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  DType dtype = DType::i64;
  Device device = cpu_device;
};

/// Uniform integers in [low, high). u8, i32 or i64. Throws Error unless low < high and the dtype holds every
/// value of the range.
Tensor random_integers(const Shape& shape, std::int64_t low, std::int64_t high,
                       const RandomIntegerOptions& options = {});

}  // namespace tandem
