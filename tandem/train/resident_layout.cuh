// What the blocks of resident_mlp.cu hold in shared memory, what they exchange, and how they meet.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/train/mlp_math.cuh"
#include "tandem/train/resident_mlp.h"

namespace tandem::resident {

constexpr int threads = 256;
constexpr int neurons = ResidentPlan::neurons;
constexpr int most_slices = 16;
constexpr int small_parts = 2;

// Offsets, in floats, of what lies in a block's shared memory and in the exchange. Shared by the host, which
// only needs the totals.
struct SharedMap {
  int pixels, pixels_other;      // the batch's slice, this step's and the next's; then partial gradients
  int weight1, first1, second1;  // [pixel of word][quarter][word] of 4 neurons
  int weight2, first2, second2;  // [neuron][class]
  int bias1, bias2;              // value, first, second one after the other
  int hidden, back;              // own rows × neurons: after the activation; gradient before it
  int outputs;                   // own rows × classes: logits, then their gradient
  int gradients;                 // a stage of the hidden layer's gradient
  int small;                     // the group's partial gradients of the second layer and the biases
  int samples, samples_other;    // which images the step after this one and the one after that need
  int labels, labels_other;      // of own rows
  int numbers, numbers_other;
  int total;
};

constexpr int stage_rows = 256;
constexpr int number_words = sizeof(UpdateNumbers<float>) / 4;

// Between rows of pixels, in words. An odd number of 16-byte pieces: no bank conflicts.
__host__ __device__ inline int pixel_stride(const ResidentPlan& plan) {
  return plan.slice_words % 8 == 0 ? plan.slice_words + 4 : plan.slice_words;
}
__host__ __device__ inline int own_rows_most(const ResidentPlan& plan) {
  return (plan.batch + plan.slices - 1) / plan.slices;
}
__host__ __device__ inline int row_parts(
    const ResidentPlan& plan) {  // step 4 splits the rows between threads
  return threads / plan.slice_words;
}

__host__ __device__ inline int small_floats(const ResidentPlan& plan) {  // dW2, db1, db2
  return (neurons * plan.classes + neurons + plan.classes + 3) / 4 * 4;
}

__host__ __device__ inline SharedMap map_shared(const ResidentPlan& plan, int states) {
  SharedMap map{};
  int at = 0;
  const auto take = [&at](int floats) {
    const int here = at;
    at += (floats + 3) / 4 * 4;
    return here;
  };
  const int matrix = plan.slice_words * 4 * neurons;
  const int pixels = plan.batch * pixel_stride(plan), parts = row_parts(plan) * matrix;
  map.pixels = take(pixels > parts ? pixels : parts);
  map.pixels_other = take(pixels > parts ? pixels : parts);
  map.weight1 = take(matrix);
  map.first1 = take(states > 0 ? matrix : 0);
  map.second1 = take(states > 1 ? matrix : 0);
  map.weight2 = take(neurons * plan.classes);
  map.first2 = take(neurons * plan.classes);
  map.second2 = take(neurons * plan.classes);
  map.bias1 = take(3 * neurons);
  map.bias2 = take(3 * plan.classes);
  map.hidden = take(own_rows_most(plan) * neurons);
  map.back = take(own_rows_most(plan) * neurons);
  map.outputs = take(own_rows_most(plan) * plan.classes);
  map.gradients = take((plan.batch < stage_rows ? plan.batch : stage_rows) * neurons);
  map.small = take(plan.slices * small_parts * small_floats(plan));
  map.samples = take(plan.batch);
  map.samples_other = take(plan.batch);
  map.labels = take(own_rows_most(plan));
  map.labels_other = take(own_rows_most(plan));
  map.numbers = take(number_words);
  map.numbers_other = take(number_words);
  map.total = at;
  return map;
}

// The exchange, in floats.
__host__ __device__ inline std::size_t sums_at(const ResidentPlan& plan, int group, int slice) {
  return (static_cast<std::size_t>(group) * plan.slices + slice) * plan.batch * neurons;
}
__host__ __device__ inline std::size_t logits_at(const ResidentPlan& plan, int parity, int group) {
  return sums_at(plan, plan.groups, 0) +
         (static_cast<std::size_t>(parity) * plan.groups + group) * plan.batch * plan.classes;
}
__host__ __device__ inline std::size_t hidden_gradients_at(const ResidentPlan& plan, int group) {
  return (logits_at(plan, 2, 0) + 3) / 4 * 4 + static_cast<std::size_t>(group) * plan.batch * neurons;
}
__host__ __device__ inline std::size_t small_at(const ResidentPlan& plan, int group, int slice) {
  return hidden_gradients_at(plan, plan.groups) +
         (static_cast<std::size_t>(group) * plan.slices + slice) * small_parts * small_floats(plan);
}

// Pixel j of a word: put behind the leading bits of 2²³, which are then taken off.
__device__ inline float to_float(std::uint32_t word, int j) {
  return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7440u + static_cast<unsigned>(j))) - 8388608.0f;
}

__device__ inline void update(const UpdateOptions& options, const UpdateNumbers<float>& numbers,
                              float gradient, float& value, float& first, float& second) {
  on_update_rule(options, [&](auto rule) { rule(value, gradient, first, second, numbers); });
}

// Where some blocks meet: what they wrote before arrive() is seen by all after wait().
struct Meeting {
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

}  // namespace tandem::resident
