#include "tandem/ops/dropout_mask_kernel.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

template <class T>
__global__ void __launch_bounds__(elementwise_threads)
    write_mask(DropoutSampler sampler, ElementRange elements, T* __restrict__ mask,
               const std::int64_t* __restrict__ step) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x, blocks = (elements.last + 3) / 4;
  const T kept = convert<T>(sampler.kept_value), dropped = convert<T>(0.0f);
  for (std::int64_t block = elements.first / 4 + std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       block < blocks; block += stride) {
    const Words4 words = sampler.words(*step, block);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::int64_t i = 4 * block + k;
      if (i >= elements.first && i < elements.last)
        mask[i - elements.first] = words.word[k] < sampler.threshold ? dropped : kept;
    }
  }
}

__global__ void increment_step(std::int64_t* step) {
  ++*step;
}

}  // namespace

template <>
void dropout_mask_kernel<Backend::cuda>(const DropoutSampler& sampler, DType dtype, std::byte* out,
                                        ElementRange elements, std::int64_t* step, StreamView stream) {
  on_dtype(FloatTypes{}, dtype, "dropout_mask", [&]<class T>() {
    const unsigned blocks = blocks_for((elements.last + 3) / 4 - elements.first / 4, elementwise_threads);
    write_mask<<<blocks, elementwise_threads, 0, cuda_stream(stream)>>>(sampler, elements,
                                                                        reinterpret_cast<T*>(out), step);
  });
  check_launch("dropout mask kernel");
  // A separate kernel, because every block of the mask kernel reads the old value.
  increment_step<<<1, 1, 0, cuda_stream(stream)>>>(step);
  check_launch("dropout step kernel");
}

}  // namespace tandem::detail
