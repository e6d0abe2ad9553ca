// What one thread block of resident_mlp.cu sees: its share of the work, prefetching, and loading and storing
// of the parameters it keeps in shared memory.
#pragma once

#include <cuda_pipeline.h>

#include "tandem/train/engines/resident_layout.cuh"

namespace tandem::detail::resident {

struct Block {
  const ResidentPlan& plan;
  const ResidentRun& run;
  const SharedLayout& layout;
  float* shared;
  int group, slice;
  int my_word, my_part;          // this thread's column of 4 pixels, and its part of the rows in phase 4
  int rows, row_begin, row_end;  // rows of the batch; this block's share of them

  __device__ float* buffer_memory(int buffer) const {
    return shared + (buffer == 0 ? layout.pixels : layout.pixels_other);
  }
  __device__ const std::uint32_t* pixels(int buffer) const {
    return reinterpret_cast<const std::uint32_t*>(buffer_memory(buffer));
  }
  __device__ float* part(int offset) const { return shared + offset; }
  __device__ int* samples(int buffer) const {
    return reinterpret_cast<int*>(shared + (buffer == 0 ? layout.samples : layout.samples_other));
  }
  __device__ int* labels(int buffer) const {
    return reinterpret_cast<int*>(shared + (buffer == 0 ? layout.labels : layout.labels_other));
  }
  __device__ int hyperparameters_offset(int buffer) const {
    return buffer == 0 ? layout.hyperparameters : layout.hyperparameters_other;
  }

  __device__ int rows_of(std::int64_t step) const {
    const std::int64_t left = run.positions - step * plan.batch;
    return static_cast<int>(left < plan.batch ? left : plan.batch);
  }

  __device__ void begin_step(std::int64_t step) {
    rows = rows_of(step);
    const int share = (rows + plan.slices - 1) / plan.slices;
    row_begin = min(slice * share, rows);
    row_end = min(row_begin + share, rows);
  }

  // Data are prefetched, so that no step waits for global memory: sample indices two steps in advance,
  // pixels, labels and hyperparameters one step in advance.
  __device__ void fetch_samples(std::int64_t step) const {
    if (step >= run.steps) return;
    const int count = rows_of(step);
    for (int i = threadIdx.x; i < count; i += threads)
      __pipeline_memcpy_async(samples(step % 2) + i, run.samples + step * plan.batch + i, 4);
  }
  __device__ void fetch(std::int64_t step) const {
    if (step >= run.steps) return;
    const std::int64_t first = step * plan.batch;
    const int count = rows_of(step), share = (count + plan.slices - 1) / plan.slices;
    for (int i = threadIdx.x; i < share && slice * share + i < count; i += threads)
      __pipeline_memcpy_async(labels(step % 2) + i, run.labels + first + slice * share + i, 4);
    if (threadIdx.x < hyperparameter_words)
      __pipeline_memcpy_async(part(hyperparameters_offset(step % 2)) + threadIdx.x,
                              reinterpret_cast<const float*>(run.hyperparameters + step) + threadIdx.x, 4);
    auto* const to = reinterpret_cast<std::uint32_t*>(buffer_memory(step % 2));
    const int stride = pixel_stride(plan), words = plan.inputs / 4, begin = slice * plan.slice_words;
    const auto* const images = reinterpret_cast<const std::uint32_t*>(run.images);
    const int* const chosen = samples(step % 2);
    const int pieces = plan.slice_words / 4, at_once = threads / pieces;
    const int word = threadIdx.x % pieces * 4, first_row = threadIdx.x / pieces;
    if (first_row >= at_once) return;
    const bool in_range = begin + word < words;  // padding pixels are 0, so that their weights stay 0
#pragma unroll 4
    for (int row = first_row; row < count; row += at_once) {
      std::uint32_t* const target = to + row * stride + word;
      if (in_range)
        __pipeline_memcpy_async(target,
                                images + static_cast<std::int64_t>(chosen[row]) * words + begin + word, 16);
      else
        *reinterpret_cast<uint4*>(target) = make_uint4(0, 0, 0, 0);
    }
  }

  // Calls f(value in shared memory, value in the state dict's memory) for this block's part of the first
  // layer, or for the parameters that all blocks of a group share.
  template <class F>
  __device__ void for_each_own(F&& f) const {
    const int words = plan.slice_words;
    for (int i = threadIdx.x; i < words * 4 * neurons; i += threads) {
      const int lane = i % 4, word = i / 4 % words, quarter = i / 4 / words % 4, pixel = i / 4 / words / 4;
      const int input = (slice * words + word) * 4 + pixel, neuron = group * neurons + quarter * 4 + lane;
      if (input < plan.inputs && neuron < plan.hidden)
        for_states(f, run.weight1, neuron * plan.inputs + input, layout.weight1 + i, layout.first1 + i,
                   layout.second1 + i);
    }
  }
  template <class F>
  __device__ void for_each_shared(F&& f) const {
    const int classes = plan.classes;
    for (int i = threadIdx.x; i < neurons * classes; i += threads) {
      const int neuron = group * neurons + i / classes;
      if (neuron < plan.hidden)
        for_states(f, run.weight2, i % classes * plan.hidden + neuron, layout.weight2 + i, layout.first2 + i,
                   layout.second2 + i);
    }
    for (int i = threadIdx.x; i < neurons && group * neurons + i < plan.hidden; i += threads)
      for_states(f, run.bias1, group * neurons + i, layout.bias1 + i, layout.bias1 + neurons + i,
                 layout.bias1 + 2 * neurons + i);
    for (int i = threadIdx.x; i < classes; i += threads)
      for_states(f, run.bias2, i, layout.bias2 + i, layout.bias2 + classes + i,
                 layout.bias2 + 2 * classes + i);
  }
  template <class F>
  __device__ void for_states(F&& f, const ResidentWeights& weights, int index, int value, int first,
                             int second) const {
    f(shared[value], weights.value[index]);
    if (weights.first) f(shared[first], weights.first[index]);
    if (weights.second) f(shared[second], weights.second[index]);
  }

  __device__ void load() const {
    for (int i = threadIdx.x; i < layout.hidden - layout.weight1; i += threads) part(layout.weight1)[i] = 0;
    __syncthreads();
    const auto load_one = [](float& here, const float& there) { here = there; };
    for_each_own(load_one);
    for_each_shared(load_one);
  }

  __device__ void store() const {
    const auto store_one = [](const float& here, float& there) { there = here; };
    for_each_own(store_one);
    if (slice == 0) for_each_shared(store_one);
  }
};

}  // namespace tandem::detail::resident
