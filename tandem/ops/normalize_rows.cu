// Rows of unit length on CUDA: one warp per row. Reductions have a fixed order.
#include "tandem/ops/normalize_rows_kernel.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/row_kernel.cuh"

namespace tandem::detail {
namespace {

using namespace row_ops;

// The scalar product of two rows, in f64; every thread of the warp gets it.
template <class T>
__device__ double warp_dot(const T* a, const T* b, std::int64_t columns) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x % warp_size; i < columns; i += warp_size)
    sum += convert<double>(a[i]) * convert<double>(b[i]);
  return warp_reduce(Sum{}, sum);
}

template <class T>
__global__ void __launch_bounds__(threads)
    normalize(std::int64_t rows, std::int64_t columns, T* __restrict__ out,
              ComputeType<T>* __restrict__ norms, const T* __restrict__ x) {
  using C = ComputeType<T>;
  const int lane = threadIdx.x % warp_size;
  const std::int64_t step = std::int64_t{gridDim.x} * (threads / warp_size);
  for (std::int64_t row = std::int64_t{blockIdx.x} * (threads / warp_size) + threadIdx.x / warp_size;
       row < rows; row += step) {
    const T* from = x + row * columns;
    T* to = out + row * columns;
    const double length = sqrt(warp_dot(from, from, columns));
    const bool is_short = length < min_row_norm;  // false for NaN, which propagates
    const C norm = static_cast<C>(is_short ? 0.0 : length);
    if (lane == 0) norms[row] = norm;
    for (std::int64_t i = lane; i < columns; i += warp_size)
      to[i] = convert<T>(is_short ? C{0} : convert<C>(from[i]) / norm);
  }
}

template <class T>
__global__ void __launch_bounds__(threads)
    normalize_gradient(std::int64_t rows, std::int64_t columns, T* __restrict__ dx, const T* __restrict__ z,
                       const ComputeType<T>* __restrict__ norms, const T* __restrict__ g) {
  using C = ComputeType<T>;
  const int lane = threadIdx.x % warp_size;
  const std::int64_t step = std::int64_t{gridDim.x} * (threads / warp_size);
  for (std::int64_t row = std::int64_t{blockIdx.x} * (threads / warp_size) + threadIdx.x / warp_size;
       row < rows; row += step) {
    const T* unit = z + row * columns;
    const T* upstream = g + row * columns;
    const C norm = norms[row], along = static_cast<C>(warp_dot(unit, upstream, columns));
    for (std::int64_t i = lane; i < columns; i += warp_size)
      dx[row * columns + i] =
          convert<T>(norm == 0 ? C{0} : (convert<C>(upstream[i]) - convert<C>(unit[i]) * along) / norm);
  }
}

}  // namespace

template <>
void normalize_rows_kernel<Backend::cuda>(DType dtype, std::int64_t rows, std::int64_t columns,
                                          std::byte* out, std::byte* norms, const std::byte* x,
                                          StreamView stream) {
  on_dtype(FloatTypes{}, dtype, "normalize_rows", [&]<class T>() {
    normalize<T><<<blocks_for(rows, threads / warp_size), threads, 0, cuda_stream(stream)>>>(
        rows, columns, reinterpret_cast<T*>(out), reinterpret_cast<ComputeType<T>*>(norms),
        reinterpret_cast<const T*>(x));
  });
  check_launch("normalize_rows kernel");
}

template <>
void normalize_rows_gradient_kernel<Backend::cuda>(DType dtype, std::int64_t rows, std::int64_t columns,
                                                   std::byte* dx, const std::byte* z, const std::byte* norms,
                                                   const std::byte* g, StreamView stream) {
  on_dtype(FloatTypes{}, dtype, "normalize_rows", [&]<class T>() {
    normalize_gradient<T><<<blocks_for(rows, threads / warp_size), threads, 0, cuda_stream(stream)>>>(
        rows, columns, reinterpret_cast<T*>(dx), reinterpret_cast<const T*>(z),
        reinterpret_cast<const ComputeType<T>*>(norms), reinterpret_cast<const T*>(g));
  });
  check_launch("normalize_rows gradient kernel");
}

}  // namespace tandem::detail
