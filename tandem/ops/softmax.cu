// Softmax on CUDA. One warp per row of up to 1024 elements, which reads the row once and keeps it in
// registers; one block per longer row, which reads it three times, mostly from the cache. Reductions have a
// fixed order, so every run gives the same bits.
#include "tandem/ops/softmax_kernel.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/row_kernel.cuh"

namespace tandem::detail {
namespace {

using namespace row_ops;

// One warp per row, `values_per_thread` elements per thread.
template <int values_per_thread, class T>
__global__ void __launch_bounds__(threads) warp_softmax(SoftmaxKind kind, std::int64_t rows, int columns,
                                                        T* __restrict__ out, const T* __restrict__ x) {
  using C = ComputeType<T>;
  const int lane = threadIdx.x % warp_size;
  const std::int64_t step = std::int64_t{gridDim.x} * (threads / warp_size);
  for (std::int64_t row = std::int64_t{blockIdx.x} * (threads / warp_size) + threadIdx.x / warp_size;
       row < rows; row += step) {
    C value[values_per_thread];
    C row_max = negative_infinity<C>();
#pragma unroll
    for (int i = 0; i < values_per_thread; ++i) {
      const int column = i * warp_size + lane;
      value[i] = column < columns ? convert<C>(x[row * columns + column]) : negative_infinity<C>();
      row_max = Max{}(row_max, value[i]);
    }
    row_max = warp_reduce(Max{}, row_max);
    C sum = 0;
#pragma unroll
    for (int i = 0; i < values_per_thread; ++i) {
      const bool inside = i * warp_size + lane < columns;
      const C exponential_value = inside ? exponential(value[i] - row_max) : C{0};
      value[i] = kind == SoftmaxKind::softmax ? exponential_value : value[i] - row_max;
      sum += exponential_value;
    }
    sum = warp_reduce(Sum{}, sum);
    const C scale = C{1} / sum, shift = logarithm(sum);
#pragma unroll
    for (int i = 0; i < values_per_thread; ++i) {
      const int column = i * warp_size + lane;
      if (column < columns)
        out[row * columns + column] =
            convert<T>(kind == SoftmaxKind::softmax ? value[i] * scale : value[i] - shift);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(threads)
    block_softmax(SoftmaxKind kind, std::int64_t rows, std::int64_t columns, T* __restrict__ out,
                  const T* __restrict__ x) {
  using C = ComputeType<T>;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = x + row * columns;
    T* to = out + row * columns;
    C row_max = negative_infinity<C>();
    for (std::int64_t i = threadIdx.x; i < columns; i += threads)
      row_max = Max{}(row_max, convert<C>(from[i]));
    row_max = block_reduce(Max{}, row_max);
    C sum = 0;
    for (std::int64_t i = threadIdx.x; i < columns; i += threads)
      sum += exponential(convert<C>(from[i]) - row_max);
    sum = block_reduce(Sum{}, sum);
    const C scale = C{1} / sum, shift = logarithm(sum);
    for (std::int64_t i = threadIdx.x; i < columns; i += threads) {
      const C value = convert<C>(from[i]) - row_max;
      to[i] = convert<T>(kind == SoftmaxKind::softmax ? exponential(value) * scale : value - shift);
    }
  }
}

// The terms of a row's sum, and the gradient of an element; see softmax.cpp for the formulas.
template <class C>
__device__ C gradient_term(SoftmaxKind kind, C y, C g) {
  return kind == SoftmaxKind::softmax ? g * y : g;
}
template <class C>
__device__ C gradient_of(SoftmaxKind kind, C y, C g, C sum) {
  return kind == SoftmaxKind::softmax ? y * (g - sum) : g - exponential(y) * sum;
}

template <int values_per_thread, class T>
__global__ void __launch_bounds__(threads)
    warp_gradient(SoftmaxKind kind, std::int64_t rows, int columns, T* __restrict__ dx,
                  const T* __restrict__ y, const T* __restrict__ g) {
  using C = ComputeType<T>;
  const int lane = threadIdx.x % warp_size;
  const std::int64_t step = std::int64_t{gridDim.x} * (threads / warp_size);
  for (std::int64_t row = std::int64_t{blockIdx.x} * (threads / warp_size) + threadIdx.x / warp_size;
       row < rows; row += step) {
    T result[values_per_thread], upstream[values_per_thread];
    C sum = 0;
#pragma unroll
    for (int i = 0; i < values_per_thread; ++i) {
      const int column = i * warp_size + lane;
      if (column >= columns) continue;
      result[i] = y[row * columns + column];
      upstream[i] = g[row * columns + column];
      sum += gradient_term(kind, convert<C>(result[i]), convert<C>(upstream[i]));
    }
    sum = warp_reduce(Sum{}, sum);
#pragma unroll
    for (int i = 0; i < values_per_thread; ++i) {
      const int column = i * warp_size + lane;
      if (column < columns)
        dx[row * columns + column] =
            convert<T>(gradient_of(kind, convert<C>(result[i]), convert<C>(upstream[i]), sum));
    }
  }
}

template <class T>
__global__ void __launch_bounds__(threads)
    block_gradient(SoftmaxKind kind, std::int64_t rows, std::int64_t columns, T* __restrict__ dx,
                   const T* __restrict__ y, const T* __restrict__ g) {
  using C = ComputeType<T>;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const std::int64_t start = row * columns;
    C sum = 0;
    for (std::int64_t i = threadIdx.x; i < columns; i += threads)
      sum += gradient_term(kind, convert<C>(y[start + i]), convert<C>(g[start + i]));
    sum = block_reduce(Sum{}, sum);
    for (std::int64_t i = threadIdx.x; i < columns; i += threads)
      dx[start + i] = convert<T>(gradient_of(kind, convert<C>(y[start + i]), convert<C>(g[start + i]), sum));
  }
}

}  // namespace

template <>
void softmax_kernel<Backend::cuda>(SoftmaxKind kind, DType dtype, std::int64_t rows, std::int64_t columns,
                                   std::byte* out, const std::byte* x, StreamView stream) {
  on_dtype(FloatTypes{}, dtype, "softmax", [&]<class T>() {
    auto* to = reinterpret_cast<T*>(out);
    const auto* from = reinterpret_cast<const T*>(x);
    const unsigned warp_blocks = blocks_for(rows, threads / warp_size);
    const int width = static_cast<int>(std::min<std::int64_t>(columns, 1024));
    if (columns <= 2 * warp_size)
      warp_softmax<2><<<warp_blocks, threads, 0, cuda_stream(stream)>>>(kind, rows, width, to, from);
    else if (columns <= 8 * warp_size)
      warp_softmax<8><<<warp_blocks, threads, 0, cuda_stream(stream)>>>(kind, rows, width, to, from);
    else if (columns <= 32 * warp_size)
      warp_softmax<32><<<warp_blocks, threads, 0, cuda_stream(stream)>>>(kind, rows, width, to, from);
    else
      block_softmax<<<blocks_for(rows, 1), threads, 0, cuda_stream(stream)>>>(kind, rows, columns, to, from);
  });
  check_launch("softmax kernel");
}

template <>
void softmax_gradient_kernel<Backend::cuda>(SoftmaxKind kind, DType dtype, std::int64_t rows,
                                            std::int64_t columns, std::byte* dx, const std::byte* y,
                                            const std::byte* g, StreamView stream) {
  on_dtype(FloatTypes{}, dtype, "softmax", [&]<class T>() {
    auto* to = reinterpret_cast<T*>(dx);
    const auto* result = reinterpret_cast<const T*>(y);
    const auto* upstream = reinterpret_cast<const T*>(g);
    const unsigned warp_blocks = blocks_for(rows, threads / warp_size);
    const int width = static_cast<int>(std::min<std::int64_t>(columns, 1024));
    if (columns <= 2 * warp_size)
      warp_gradient<2>
          <<<warp_blocks, threads, 0, cuda_stream(stream)>>>(kind, rows, width, to, result, upstream);
    else if (columns <= 8 * warp_size)
      warp_gradient<8>
          <<<warp_blocks, threads, 0, cuda_stream(stream)>>>(kind, rows, width, to, result, upstream);
    else if (columns <= 32 * warp_size)
      warp_gradient<32>
          <<<warp_blocks, threads, 0, cuda_stream(stream)>>>(kind, rows, width, to, result, upstream);
    else
      block_gradient<<<blocks_for(rows, 1), threads, 0, cuda_stream(stream)>>>(kind, rows, columns, to,
                                                                               result, upstream);
  });
  check_launch("softmax gradient kernel");
}

}  // namespace tandem::detail
