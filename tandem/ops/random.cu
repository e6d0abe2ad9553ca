#include "tandem/ops/elementwise.cuh"
#include "tandem/ops/random_kernel.h"

namespace tandem::detail {
namespace {

template <class T, class F>
__global__ void __launch_bounds__(elementwise_threads) random_blocks(F f, T* out, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t blocks = (count + elements_per_block<T> - 1) / elements_per_block<T>;
  for (std::int64_t block = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; block < blocks;
       block += step)
    write_random_block(f, block, out, count);
}

}  // namespace

template <>
void random_kernel<Backend::cuda>(const RandomFill& fill, DType dtype, std::byte* out, std::int64_t count,
                                  StreamView stream) {
  on_distribution(fill, dtype, [&]<class T>(auto functor, T) {
    const unsigned blocks = blocks_for(count, elementwise_threads * elements_per_block<T>);
    random_blocks<<<blocks, elementwise_threads, 0, cuda_stream(stream)>>>(functor, reinterpret_cast<T*>(out),
                                                                           count);
    check_launch("random kernel");
  });
}

}  // namespace tandem::detail
