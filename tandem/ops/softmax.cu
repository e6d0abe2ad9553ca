// Softmax on CUDA. A row of up to 1024 elements belongs to one warp, which holds it in registers and reads it
// once; a longer row belongs to a block, which reads it three times, mostly from the cache. Sums go through
// fixed trees: the same bits on every run.
#include "tandem/ops/softmax.h"

#include "tandem/ops/row_warps.cuh"

namespace tandem {
namespace {

using namespace warps;

// A warp a row, `held` elements in each thread.
template <int held, class T>
__global__ void __launch_bounds__(threads)
    warp_softmax(Softmax kind, std::int64_t rows, int columns, T* __restrict__ out, const T* __restrict__ x) {
  using C = ComputeType<T>;
  const int lane = threadIdx.x % warp;
  const std::int64_t step = std::int64_t{gridDim.x} * (threads / warp);
  for (std::int64_t row = std::int64_t{blockIdx.x} * (threads / warp) + threadIdx.x / warp; row < rows;
       row += step) {
    C value[held];
    C greatest = lowest<C>();
#pragma unroll
    for (int i = 0; i < held; ++i) {
      const int column = i * warp + lane;
      value[i] = column < columns ? convert<C>(x[row * columns + column]) : lowest<C>();
      greatest = Greater{}(greatest, value[i]);
    }
    greatest = join_warp(Greater{}, greatest);
    C sum = 0;
#pragma unroll
    for (int i = 0; i < held; ++i) {
      const bool inside = i * warp + lane < columns;
      const C power = inside ? exponential(value[i] - greatest) : C{0};
      value[i] = kind == Softmax::plain ? power : value[i] - greatest;
      sum += power;
    }
    sum = join_warp(Plus{}, sum);
    const C scale = C{1} / sum, shift = logarithm(sum);
#pragma unroll
    for (int i = 0; i < held; ++i) {
      const int column = i * warp + lane;
      if (column < columns)
        out[row * columns + column] =
            convert<T>(kind == Softmax::plain ? value[i] * scale : value[i] - shift);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(threads)
    block_softmax(Softmax kind, std::int64_t rows, std::int64_t columns, T* __restrict__ out,
                  const T* __restrict__ x) {
  using C = ComputeType<T>;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = x + row * columns;
    T* to = out + row * columns;
    C greatest = lowest<C>();
    for (std::int64_t i = threadIdx.x; i < columns; i += threads)
      greatest = Greater{}(greatest, convert<C>(from[i]));
    greatest = join_block(Greater{}, greatest);
    C sum = 0;
    for (std::int64_t i = threadIdx.x; i < columns; i += threads)
      sum += exponential(convert<C>(from[i]) - greatest);
    sum = join_block(Plus{}, sum);
    const C scale = C{1} / sum, shift = logarithm(sum);
    for (std::int64_t i = threadIdx.x; i < columns; i += threads) {
      const C value = convert<C>(from[i]) - greatest;
      to[i] = convert<T>(kind == Softmax::plain ? exponential(value) * scale : value - shift);
    }
  }
}

// What the row's sum adds up, and what an element becomes; see softmax.cpp for the formulas.
template <class C>
__device__ C gradient_term(Softmax kind, C y, C g) {
  return kind == Softmax::plain ? g * y : g;
}
template <class C>
__device__ C gradient_of(Softmax kind, C y, C g, C sum) {
  return kind == Softmax::plain ? y * (g - sum) : g - exponential(y) * sum;
}

template <int held, class T>
__global__ void __launch_bounds__(threads)
    warp_gradient(Softmax kind, std::int64_t rows, int columns, T* __restrict__ dx, const T* __restrict__ y,
                  const T* __restrict__ g) {
  using C = ComputeType<T>;
  const int lane = threadIdx.x % warp;
  const std::int64_t step = std::int64_t{gridDim.x} * (threads / warp);
  for (std::int64_t row = std::int64_t{blockIdx.x} * (threads / warp) + threadIdx.x / warp; row < rows;
       row += step) {
    T result[held], arriving[held];
    C sum = 0;
#pragma unroll
    for (int i = 0; i < held; ++i) {
      const int column = i * warp + lane;
      if (column >= columns) continue;
      result[i] = y[row * columns + column];
      arriving[i] = g[row * columns + column];
      sum += gradient_term(kind, convert<C>(result[i]), convert<C>(arriving[i]));
    }
    sum = join_warp(Plus{}, sum);
#pragma unroll
    for (int i = 0; i < held; ++i) {
      const int column = i * warp + lane;
      if (column < columns)
        dx[row * columns + column] =
            convert<T>(gradient_of(kind, convert<C>(result[i]), convert<C>(arriving[i]), sum));
    }
  }
}

template <class T>
__global__ void __launch_bounds__(threads)
    block_gradient(Softmax kind, std::int64_t rows, std::int64_t columns, T* __restrict__ dx,
                   const T* __restrict__ y, const T* __restrict__ g) {
  using C = ComputeType<T>;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const std::int64_t start = row * columns;
    C sum = 0;
    for (std::int64_t i = threadIdx.x; i < columns; i += threads)
      sum += gradient_term(kind, convert<C>(y[start + i]), convert<C>(g[start + i]));
    sum = join_block(Plus{}, sum);
    for (std::int64_t i = threadIdx.x; i < columns; i += threads)
      dx[start + i] = convert<T>(gradient_of(kind, convert<C>(y[start + i]), convert<C>(g[start + i]), sum));
  }
}

}  // namespace

template <>
void softmax_kernel<Backend::cuda>(Softmax kind, DType dtype, std::int64_t rows, std::int64_t columns,
                                   std::byte* out, const std::byte* x, StreamView stream) {
  on_dtype(FloatTypes{}, dtype, "softmax", [&]<class T>() {
    auto* to = reinterpret_cast<T*>(out);
    const auto* from = reinterpret_cast<const T*>(x);
    const unsigned warp_blocks = blocks_for(rows, threads / warp);
    const int width = static_cast<int>(std::min<std::int64_t>(columns, 1024));
    if (columns <= 2 * warp)
      warp_softmax<2><<<warp_blocks, threads, 0, cuda_stream(stream)>>>(kind, rows, width, to, from);
    else if (columns <= 8 * warp)
      warp_softmax<8><<<warp_blocks, threads, 0, cuda_stream(stream)>>>(kind, rows, width, to, from);
    else if (columns <= 32 * warp)
      warp_softmax<32><<<warp_blocks, threads, 0, cuda_stream(stream)>>>(kind, rows, width, to, from);
    else
      block_softmax<<<blocks_for(rows, 1), threads, 0, cuda_stream(stream)>>>(kind, rows, columns, to, from);
  });
  check_launch("softmax kernel");
}

template <>
void softmax_gradient_kernel<Backend::cuda>(Softmax kind, DType dtype, std::int64_t rows,
                                            std::int64_t columns, std::byte* dx, const std::byte* y,
                                            const std::byte* g, StreamView stream) {
  on_dtype(FloatTypes{}, dtype, "softmax", [&]<class T>() {
    auto* to = reinterpret_cast<T*>(dx);
    const auto* result = reinterpret_cast<const T*>(y);
    const auto* arriving = reinterpret_cast<const T*>(g);
    const unsigned warp_blocks = blocks_for(rows, threads / warp);
    const int width = static_cast<int>(std::min<std::int64_t>(columns, 1024));
    if (columns <= 2 * warp)
      warp_gradient<2>
          <<<warp_blocks, threads, 0, cuda_stream(stream)>>>(kind, rows, width, to, result, arriving);
    else if (columns <= 8 * warp)
      warp_gradient<8>
          <<<warp_blocks, threads, 0, cuda_stream(stream)>>>(kind, rows, width, to, result, arriving);
    else if (columns <= 32 * warp)
      warp_gradient<32>
          <<<warp_blocks, threads, 0, cuda_stream(stream)>>>(kind, rows, width, to, result, arriving);
    else
      block_gradient<<<blocks_for(rows, 1), threads, 0, cuda_stream(stream)>>>(kind, rows, columns, to,
                                                                               result, arriving);
  });
  check_launch("softmax gradient kernel");
}

}  // namespace tandem
