#include "tandem/ops/maximum_kernel.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

template <class T>
__global__ void maximum_row_per_block(std::int64_t rows, std::int64_t columns, T* out, const T* a,
                                      const T* b) {
  using C = ComputeType<T>;
  for (std::int64_t i = blockIdx.x; i < rows; i += gridDim.x)
    for (std::int64_t j = threadIdx.x; j < columns; j += blockDim.x) {
      const std::int64_t index = i * columns + j;
      out[index] = convert<T>(Maximum{}(convert<C>(a[index]), convert<C>(b[index])));
    }
}

}  // namespace

// One block per row, one thread per column: 1000 × 1000 is 1000 blocks of 1000 threads. Threads loop over
// wider rows.
template <>
void maximum_kernel<Version::cuda_simple>(DType dtype, const Layout<3>& layout, std::int64_t columns,
                                          std::byte* out, const std::byte* a, const std::byte* b,
                                          StreamView stream) {
  const std::int64_t rows = layout.numel / columns;
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(rows, 1 << 30));
  const auto threads = static_cast<unsigned>(std::min<std::int64_t>(columns, 1024));
  on_dtype(AllTypes{}, dtype, "maximum", [&]<class T>() {
    maximum_row_per_block<<<blocks, threads, 0, cuda_stream(stream)>>>(
        rows, columns, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(a),
        reinterpret_cast<const T*>(b));
  });
  check_launch("maximum (cuda-simple)");
}

template <>
void maximum_kernel<Version::cuda>(DType dtype, const Layout<3>& layout, std::int64_t, std::byte* out,
                                   const std::byte* a, const std::byte* b, StreamView stream) {
  on_dtype(AllTypes{}, dtype, "maximum", [&]<class T>() {
    elementwise_cuda(Maximum{}, layout, stream, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(a),
                     reinterpret_cast<const T*>(b));
  });
}

template <>
void maximum_gradient_kernel<Backend::cuda>(DType dtype, const Layout<4>& layout, std::byte* out,
                                            const std::byte* gradient, const std::byte* x,
                                            const std::byte* other, StreamView stream) {
  on_dtype(FloatTypes{}, dtype, "maximum", [&]<class T>() {
    elementwise_cuda(MaximumGradient{}, layout, stream, reinterpret_cast<T*>(out),
                     reinterpret_cast<const T*>(gradient), reinterpret_cast<const T*>(x),
                     reinterpret_cast<const T*>(other));
  });
}

}  // namespace tandem::detail
