#include "tandem/ops/one_hot_kernel.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"
#include "tandem/ops/labels.h"

namespace tandem::detail {
namespace {

template <class T, class Label>
__global__ void __launch_bounds__(elementwise_threads)
    write_one_hot(std::int64_t count, std::int64_t classes, T* __restrict__ out,
                  const Label* __restrict__ labels) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const std::int64_t label = labels[i / classes];
    const bool is_valid = label >= 0 && label < classes;
    out[i] = convert<T>(is_valid ? (label == i % classes ? 1.0f : 0.0f) : static_cast<float>(NAN));
  }
}

}  // namespace

template <>
void one_hot_kernel<Backend::cuda>(DType dtype, DType label_dtype, std::int64_t rows, std::int64_t classes,
                                   std::byte* out, const std::byte* labels, StreamView stream) {
  on_dtype(FloatTypes{}, dtype, "one_hot", [&]<class T>() {
    on_dtype(LabelTypes{}, label_dtype, "one_hot", [&]<class Label>() {
      const std::int64_t count = rows * classes;
      write_one_hot<<<blocks_for(count, elementwise_threads), elementwise_threads, 0, cuda_stream(stream)>>>(
          count, classes, reinterpret_cast<T*>(out), reinterpret_cast<const Label*>(labels));
    });
  });
  check_launch("one-hot kernel");
}

}  // namespace tandem::detail
