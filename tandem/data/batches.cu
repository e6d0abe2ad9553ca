#include "tandem/data/batches_kernel.h"
#include "tandem/device/cuda.h"

namespace tandem::detail {
namespace {

__global__ void fill(SampleOrder order, std::int64_t first, std::int32_t* out, std::int64_t count) {
  const std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (i >= count) return;
  std::int64_t pass = 0;
  Shuffle shuffle = order.shuffle(0);
  out[i] = order.draw_local(first + i, shuffle, pass).sample;
}

}  // namespace

template <>
void order_kernel<Backend::cuda>(const BatchPlan& plan, std::int64_t epoch, std::int64_t first,
                                 std::int32_t* out, std::int64_t count, StreamView stream) {
  constexpr int threads = 256;
  const SampleOrder order = sample_order(plan, epoch);
  fill<<<static_cast<unsigned>((count + threads - 1) / threads), threads, 0, cuda_stream(stream)>>>(
      order, first, out, count);
  check_launch("batches");
}

}  // namespace tandem::detail
