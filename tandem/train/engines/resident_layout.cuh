// Layout of shared memory and of the exchange buffer of resident_mlp.cu, and its barrier between blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/train/engines/mlp_math.cuh"
#include "tandem/train/engines/resident_mlp.h"

namespace tandem::detail::resident {

constexpr int threads = 256;
constexpr int neurons = ResidentPlan::neurons;
constexpr int max_slices = 16;
constexpr int small_parts = 2;

// Offsets, in floats, into a block's shared memory. The host uses only the total.
struct SharedLayout {
  int pixels, pixels_other;      // the batch's slice for even and odd steps; reused for partial gradients
  int weight1, first1, second1;  // [pixel of word][quarter][word] of 4 neurons
  int weight2, first2, second2;  // [neuron][class]
  int bias1, bias2;              // value, first, second consecutively
  int hidden, back;              // own rows × neurons: activations; gradients of the pre-activations
  int outputs;                   // own rows × classes: logits, then their gradients
  int gradients;                 // staging buffer for the hidden layer's gradients
  int small;                     // the group's partial gradients of the second layer and the biases
  int samples, samples_other;    // image indices of the next two steps
  int labels, labels_other;      // of own rows
  int hyperparameters, hyperparameters_other;
  int total;
};

constexpr int stage_rows = 256;
constexpr int hyperparameter_words = sizeof(StepHyperparameters<float>) / 4;

// Distance between rows of pixels, in words. An odd number of 16-byte pieces avoids bank conflicts.
__host__ __device__ inline int pixel_stride(const ResidentPlan& plan) {
  return plan.slice_words % 8 == 0 ? plan.slice_words + 4 : plan.slice_words;
}
__host__ __device__ inline int max_own_rows(const ResidentPlan& plan) {
  return (plan.batch + plan.slices - 1) / plan.slices;
}
__host__ __device__ inline int row_parts(
    const ResidentPlan& plan) {  // parts into which phase 4 divides the rows
  return threads / plan.slice_words;
}

__host__ __device__ inline int small_gradient_floats(const ResidentPlan& plan) {  // dW2, db1, db2
  return (neurons * plan.classes + neurons + plan.classes + 3) / 4 * 4;
}

__host__ __device__ inline SharedLayout shared_layout(const ResidentPlan& plan, int states) {
  SharedLayout layout{};
  int at = 0;
  const auto take = [&at](int floats) {
    const int here = at;
    at += (floats + 3) / 4 * 4;
    return here;
  };
  const int matrix = plan.slice_words * 4 * neurons;
  const int pixels = plan.batch * pixel_stride(plan), parts = row_parts(plan) * matrix;
  layout.pixels = take(pixels > parts ? pixels : parts);
  layout.pixels_other = take(pixels > parts ? pixels : parts);
  layout.weight1 = take(matrix);
  layout.first1 = take(states > 0 ? matrix : 0);
  layout.second1 = take(states > 1 ? matrix : 0);
  layout.weight2 = take(neurons * plan.classes);
  layout.first2 = take(neurons * plan.classes);
  layout.second2 = take(neurons * plan.classes);
  layout.bias1 = take(3 * neurons);
  layout.bias2 = take(3 * plan.classes);
  layout.hidden = take(max_own_rows(plan) * neurons);
  layout.back = take(max_own_rows(plan) * neurons);
  layout.outputs = take(max_own_rows(plan) * plan.classes);
  layout.gradients = take((plan.batch < stage_rows ? plan.batch : stage_rows) * neurons);
  layout.small = take(plan.slices * small_parts * small_gradient_floats(plan));
  layout.samples = take(plan.batch);
  layout.samples_other = take(plan.batch);
  layout.labels = take(max_own_rows(plan));
  layout.labels_other = take(max_own_rows(plan));
  layout.hyperparameters = take(hyperparameter_words);
  layout.hyperparameters_other = take(hyperparameter_words);
  layout.total = at;
  return layout;
}

// Offsets into the exchange buffer, in floats.
__host__ __device__ inline std::size_t partial_sums_offset(const ResidentPlan& plan, int group, int slice) {
  return (static_cast<std::size_t>(group) * plan.slices + slice) * plan.batch * neurons;
}
__host__ __device__ inline std::size_t logits_offset(const ResidentPlan& plan, int parity, int group) {
  return partial_sums_offset(plan, plan.groups, 0) +
         (static_cast<std::size_t>(parity) * plan.groups + group) * plan.batch * plan.classes;
}
__host__ __device__ inline std::size_t hidden_gradients_offset(const ResidentPlan& plan, int group) {
  return (logits_offset(plan, 2, 0) + 3) / 4 * 4 + static_cast<std::size_t>(group) * plan.batch * neurons;
}
__host__ __device__ inline std::size_t small_gradients_offset(const ResidentPlan& plan, int group,
                                                              int slice) {
  return hidden_gradients_offset(plan, plan.groups) +
         (static_cast<std::size_t>(group) * plan.slices + slice) * small_parts * small_gradient_floats(plan);
}

// Pixel j of a word as float: the byte becomes the low mantissa bits of 2²³, which is then subtracted.
__device__ inline float to_float(std::uint32_t word, int j) {
  return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7440u + static_cast<unsigned>(j))) - 8388608.0f;
}

__device__ inline void update(const OptimizerOptions& options,
                              const StepHyperparameters<float>& hyperparameters, float gradient, float& value,
                              float& first, float& second) {
  on_update_rule(options, [&](auto rule) { rule(value, gradient, first, second, hyperparameters); });
}

// A barrier between thread blocks: writes before arrive() are visible to all members after wait().
struct Barrier {
  unsigned* counter;
  unsigned members, arrivals = 0;

  __device__ void arrive() {
    arrivals += members;
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
  }
  __device__ void wait() const {
    if (threadIdx.x == 0) {
      unsigned seen = 0;
      do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
      while (seen < arrivals);
    }
    __syncthreads();
  }
};

}  // namespace tandem::detail::resident
