// The update on CUDA: one block per chunk, across all parameters.
#include "tandem/optim/fused_update.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"
#include "tandem/optim/update_launch.cuh"

namespace tandem::detail {
namespace {

template <class T>
__global__ void write_hyperparameters(StepHyperparameters<T> values,
                                      StepHyperparameters<T>* hyperparameters) {
  *hyperparameters = values;
}

template <class T>
__device__ bool is_aligned(const T* pointer, int width) {
  return reinterpret_cast<std::uintptr_t>(pointer) % (sizeof(T) * width) == 0;
}

template <class Rule, class T>
__global__ void __launch_bounds__(update_threads)
    update_chunks(const UpdateSlot* __restrict__ slots, const UpdateChunk* __restrict__ chunks,
                  const StepHyperparameters<T>* __restrict__ hyperparameters, int hyperparameter_step,
                  int first_slot, GradientAddresses gradients) {
  constexpr int width = 16 / sizeof(T);
  using Packed = Pack<T, width>;
  const UpdateChunk chunk = chunks[blockIdx.x];
  const T* g = reinterpret_cast<const T*>(gradients.of_slot[chunk.slot - first_slot]);
  if (!g) return;
  const UpdateSlot slot = slots[chunk.slot];
  T* w = reinterpret_cast<T*>(slot.weight);
  T* first = reinterpret_cast<T*>(slot.states[0]);
  T* second = reinterpret_cast<T*>(slot.states[1]);
  const StepHyperparameters<T> n = hyperparameters[chunk.slot * hyperparameter_step];
  const auto [begin, end] = range_of(chunk, slot.count);
  const Rule rule;
  std::int64_t done = begin;
  if (is_aligned(w, width) && is_aligned(g, width) && is_aligned(first, width) && is_aligned(second, width)) {
    const std::int64_t packs = (end - begin) / width;
    for (std::int64_t p = begin / width + threadIdx.x; p < begin / width + packs; p += update_threads) {
      Packed weight = reinterpret_cast<Packed*>(w)[p], state0{}, state1{};
      const Packed gradient = reinterpret_cast<const Packed*>(g)[p];
      if constexpr (Rule::states > 0) state0 = reinterpret_cast<Packed*>(first)[p];
      if constexpr (Rule::states > 1) state1 = reinterpret_cast<Packed*>(second)[p];
#pragma unroll
      for (int i = 0; i < width; ++i)
        rule(weight.value[i], gradient.value[i], state0.value[i], state1.value[i], n);
      reinterpret_cast<Packed*>(w)[p] = weight;
      if constexpr (Rule::states > 0) reinterpret_cast<Packed*>(first)[p] = state0;
      if constexpr (Rule::states > 1) reinterpret_cast<Packed*>(second)[p] = state1;
    }
    done += packs * width;
  }
  for (std::int64_t i = done + threadIdx.x; i < end; i += update_threads) {
    T unused{};
    rule(w[i], g[i], Rule::states > 0 ? first[i] : unused, Rule::states > 1 ? second[i] : unused, n);
  }
}

// Slot i has the hyperparameters number i · hyperparameter_step.
template <class Rule>
void update_all(Rule, DType dtype, const UpdateTable& table, std::span<const std::byte* const> gradients,
                const std::byte* hyperparameters, int hyperparameter_step, StreamView stream) {
  for_each_launch(table, gradients, [&](const UpdateLaunch& launch) {
    on_dtype(TypeList<float, double>{}, dtype, "optimizer", [&]<class T>() {
      update_chunks<Rule, T><<<launch.blocks, update_threads, 0, cuda_stream(stream)>>>(
          launch.slots, launch.chunks, reinterpret_cast<const StepHyperparameters<T>*>(hyperparameters),
          hyperparameter_step, launch.first_slot, launch.gradients);
    });
    check_launch("optimizer kernel");
  });
}

}  // namespace

template <>
void write_hyperparameters_kernel<Backend::cuda>(const OptimizerOptions& options, DType dtype,
                                                 double learning_rate, std::int64_t step,
                                                 std::byte* hyperparameters, StreamView stream) {
  on_dtype(TypeList<float, double>{}, dtype, "optimizer", [&]<class T>() {
    write_hyperparameters<<<1, 1, 0, cuda_stream(stream)>>>(
        step_hyperparameters<T>(options, learning_rate, step),
        reinterpret_cast<StepHyperparameters<T>*>(hyperparameters));
  });
  check_launch("optimizer hyperparameters kernel");
}

template <>
void fused_update_kernel<Backend::cuda>(const OptimizerOptions& options, DType dtype,
                                        const UpdateTable& table, std::span<const std::byte* const> gradients,
                                        const std::byte* hyperparameters, int hyperparameter_step,
                                        StreamView stream) {
  on_update_rule(options, [&](auto rule) {
    update_all(rule, dtype, table, gradients, hyperparameters, hyperparameter_step, stream);
  });
}

template <>
void fused_update_kernel<Backend::cuda>(OtherRule other, DType dtype, const UpdateTable& table,
                                        std::span<const std::byte* const> gradients,
                                        const std::byte* hyperparameters, StreamView stream) {
  on_other_rule(other, [&](auto rule, int step) {
    update_all(rule, dtype, table, gradients, hyperparameters, step, stream);
  });
}

}  // namespace tandem::detail
