// Matrix products on the CPU. The bits of an element of the result depend on its row of A, its column of B
// and their length, and on nothing else: not on the number of threads, the other rows and columns, or where
// the element is. It is summed in the order of the inner dimension, in blocks of 256 (f64: 128) products that
// are added in order. With fused multiply-adds (AVX2, AVX-512, NEON) the bits are the same for every width of
// vectors.
#pragma once

#include <cstdint>

namespace tandem::detail {

template <class T>
inline constexpr std::int64_t gemm_inner_block = 1024 / sizeof(T);

// (m × k) · (k × n).
struct GemmSize {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

// A matrix in memory: stored rows are `leading_dimension` elements apart. A transposed operand is stored as
// its transpose.
template <class T>
struct GemmOperand {
  const T* data;
  std::int64_t leading_dimension;
  bool transposed = false;
};

// C = A · B; C is row-major.
template <class T>
struct Gemm {
  GemmSize size;
  GemmOperand<T> a;
  GemmOperand<T> b;
  T* c;
  std::int64_t leading_dimension_c;
  bool symmetric = false;  // B is the transpose of A: about half of C is computed, the rest copied
};

// For float and double. No size is 0. Uses the threads of parallel_for.
template <class T>
void gemm(const Gemm<T>& product);

}  // namespace tandem::detail
