// The factor of GradientClip on CUDA: one block per chunk sums squares, then one block adds the sums. No
// atomics: the order is fixed.
#include "tandem/core/on_dtype.h"
#include "tandem/ops/row_kernel.cuh"
#include "tandem/optim/clip_gradients_kernel.h"
#include "tandem/optim/update_launch.cuh"

namespace tandem::detail {
namespace {

using row_ops::block_reduce;
using row_ops::Sum;
static_assert(update_threads == row_ops::threads);

template <class T>
__global__ void __launch_bounds__(update_threads)
    sum_chunks(const UpdateSlot* __restrict__ slots, const UpdateChunk* __restrict__ chunks, int first_slot,
               GradientAddresses gradients, double* __restrict__ square_sums) {
  const UpdateChunk chunk = chunks[blockIdx.x];
  const T* g = reinterpret_cast<const T*>(gradients.of_slot[chunk.slot - first_slot]);
  const auto [begin, end] = range_of(chunk, g ? slots[chunk.slot].count : 0);
  double sum = 0;
#pragma unroll 4
  for (std::int64_t i = begin + threadIdx.x; i < end; i += update_threads) {
    const double slope = g[i];
    sum += slope * slope;
  }
  sum = block_reduce(Sum{}, sum);
  if (threadIdx.x == 0) square_sums[blockIdx.x] = sum;
}

template <class T>
__global__ void __launch_bounds__(update_threads)
    write_factor(const double* __restrict__ square_sums, std::int64_t chunks, double max_norm,
                 double* __restrict__ norm, StepHyperparameters<T>* __restrict__ hyperparameters) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < chunks; i += update_threads) sum += square_sums[i];
  sum = block_reduce(Sum{}, sum);
  if (threadIdx.x != 0) return;
  *norm = std::sqrt(sum);
  hyperparameters->rate = static_cast<T>(clip_factor(std::sqrt(sum), max_norm));
}

}  // namespace

template <>
void clip_factor_kernel<Backend::cuda>(DType dtype, const ClipWorkspace& workspace, double max_norm,
                                       StreamView stream) {
  const UpdateTable& table = workspace.table;
  auto* const square_sums = workspace.square_sums.data<double>();
  on_dtype(TypeList<float, double>{}, dtype, "clip_gradients", [&]<class T>() {
    for_each_launch(table, workspace.gradients, [&](const UpdateLaunch& launch) {
      sum_chunks<T><<<launch.blocks, update_threads, 0, cuda_stream(stream)>>>(
          launch.slots, launch.chunks, launch.first_slot, launch.gradients, square_sums + launch.first_chunk);
    });
    write_factor<T><<<1, update_threads, 0, cuda_stream(stream)>>>(
        square_sums, table.first_chunk.back(), max_norm, workspace.norm.data<double>(),
        reinterpret_cast<StepHyperparameters<T>*>(workspace.hyperparameters.bytes()));
  });
  check_launch("clip gradients kernel");
}

}  // namespace tandem::detail
