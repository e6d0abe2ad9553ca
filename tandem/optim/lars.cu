// The rates of LARS on CUDA: one block per chunk sums squares, then one block per slot adds the sums of its
// chunks. No atomics: the order is fixed.
#include "tandem/optim/lars_kernel.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/row_kernel.cuh"
#include "tandem/optim/update_launch.cuh"

namespace tandem::detail {
namespace {

using row_ops::block_reduce;
using row_ops::Sum;
static_assert(update_threads == row_ops::threads);

template <class T>
__global__ void __launch_bounds__(update_threads)
    sum_chunks(const UpdateSlot* __restrict__ slots, const UpdateChunk* __restrict__ chunks,
               const std::uint8_t* __restrict__ is_adapted, int first_slot, GradientAddresses gradients,
               double2* __restrict__ square_sums) {
  const UpdateChunk chunk = chunks[blockIdx.x];
  const T* g = reinterpret_cast<const T*>(gradients.of_slot[chunk.slot - first_slot]);
  if (!g || !is_adapted[chunk.slot]) return;
  const UpdateSlot slot = slots[chunk.slot];
  const T* w = reinterpret_cast<const T*>(slot.weight);
  const auto [begin, end] = range_of(chunk, slot.count);
  double weights = 0, gradient = 0;
#pragma unroll 4
  for (std::int64_t i = begin + threadIdx.x; i < end; i += update_threads) {
    const double weight = w[i], slope = g[i];
    weights += weight * weight;
    gradient += slope * slope;
  }
  weights = block_reduce(Sum{}, weights);
  gradient = block_reduce(Sum{}, gradient);
  if (threadIdx.x == 0) square_sums[blockIdx.x] = make_double2(weights, gradient);
}

template <class T>
__global__ void __launch_bounds__(update_threads)
    adapt_slots(const std::uint8_t* __restrict__ is_adapted, const std::int64_t* __restrict__ first_chunk,
                const double2* __restrict__ square_sums, double trust_coefficient,
                const StepHyperparameters<T>* __restrict__ of_step,
                StepHyperparameters<T>* __restrict__ of_slots) {
  const std::int64_t slot = blockIdx.x;
  StepHyperparameters<T> values = *of_step;
  if (!is_adapted[slot]) {
    values.decay = 0;
    if (threadIdx.x == 0) of_slots[slot] = values;
    return;
  }
  double weights = 0, gradient = 0;
  for (std::int64_t chunk = first_chunk[slot] + threadIdx.x; chunk < first_chunk[slot + 1];
       chunk += update_threads) {
    weights += square_sums[chunk].x;
    gradient += square_sums[chunk].y;
  }
  weights = block_reduce(Sum{}, weights);
  gradient = block_reduce(Sum{}, gradient);
  if (threadIdx.x == 0) of_slots[slot] = adapted(values, trust_coefficient, weights, gradient);
}

}  // namespace

template <>
void lars_rates_kernel<Backend::cuda>(DType dtype, const UpdateTable& table, const LarsWorkspace& workspace,
                                      std::span<const std::byte* const> gradients,
                                      const std::byte* hyperparameters, StreamView stream) {
  const auto* const is_adapted = workspace.is_adapted.data<std::uint8_t>();
  auto* const square_sums = reinterpret_cast<double2*>(workspace.square_sums.bytes());
  on_dtype(TypeList<float, double>{}, dtype, "lars", [&]<class T>() {
    for_each_launch(table, gradients, [&](const UpdateLaunch& launch) {
      sum_chunks<T><<<launch.blocks, update_threads, 0, cuda_stream(stream)>>>(
          launch.slots, launch.chunks, is_adapted, launch.first_slot, launch.gradients,
          square_sums + launch.first_chunk);
    });
    adapt_slots<T><<<static_cast<unsigned>(table.slots.size()), update_threads, 0, cuda_stream(stream)>>>(
        is_adapted, workspace.first_chunk.data<std::int64_t>(), square_sums, workspace.trust_coefficient,
        reinterpret_cast<const StepHyperparameters<T>*>(hyperparameters),
        reinterpret_cast<StepHyperparameters<T>*>(workspace.hyperparameters.bytes()));
  });
  check_launch("lars kernel");
}

}  // namespace tandem::detail
