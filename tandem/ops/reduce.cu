// Reductions on CUDA. The split into chunks depends only on the shape, threads are merged in a fixed tree and
// nothing is added atomically, so the same input gives the same bits on every run. Where the reduced axes are
// the inner ones, a team of threads reads adjacent elements of a row; where they are the outer ones, adjacent
// threads read adjacent outputs. A reduction to few outputs takes two passes: partial states to a buffer,
// then a merge. Sums are accumulated in f64, which on a data-center GPU is still limited by memory bandwidth.
#include "tandem/ops/reduce_kernel.h"

#include <algorithm>

#include "tandem/core/on_dtype.h"
#include "tandem/device/buffer.h"
#include "tandem/ops/elementwise.cuh"
#include "tandem/ops/reducers.h"

namespace tandem::detail {
namespace {

constexpr int threads = 256;
constexpr int warp_size = 32;
constexpr int column_teams = threads / warp_size;  // warps per block of the columns kernel

template <class State>
__device__ State shuffle_xor(State state, int mask) {
  static_assert(sizeof(State) % 4 == 0);
  constexpr int words = sizeof(State) / 4;
  unsigned word[words];
  memcpy(word, &state, sizeof(State));
#pragma unroll
  for (int i = 0; i < words; ++i) word[i] = __shfl_xor_sync(0xffffffffu, word[i], mask);
  memcpy(&state, word, sizeof(State));
  return state;
}

// Merges the states of a team of `width` adjacent threads (a power of two, at most the block); the first
// thread of the team gets the result. Every thread of the block must call it.
template <class Reducer>
__device__ typename Reducer::State merge_team(typename Reducer::State state, int width) {
  using State = typename Reducer::State;
  __shared__ alignas(State) unsigned char memory[sizeof(State) * threads / warp_size];
  State* shared = reinterpret_cast<State*>(memory);
  for (int mask = min(width, warp_size) / 2; mask > 0; mask /= 2)
    state = Reducer::merge(state, shuffle_xor(state, mask));
  if (width > warp_size) {
    if (threadIdx.x % warp_size == 0) shared[threadIdx.x / warp_size] = state;
    __syncthreads();
    if (threadIdx.x % width == 0)
      for (int other = 1; other < width / warp_size; ++other)
        state = Reducer::merge(state, shared[threadIdx.x / warp_size + other]);
    __syncthreads();
  }
  return state;
}

__device__ inline std::int64_t offset_of(const Layout<1>& reduced, std::int64_t index) {
  return reduced.rank == 1 ? index * reduced.strides[0][0] : reduced.offsets(index)[0];
}

// Folds every `step`-th element of [first, end), with four loads in flight.
template <class Reducer, class T>
__device__ typename Reducer::State fold_strided(const Layout<1>& reduced, const T* __restrict__ x,
                                                std::int64_t first, std::int64_t end, std::int64_t step) {
  constexpr int loads = 4;
  auto state = Reducer::initial();
  std::int64_t index = first;
  for (; index + (loads - 1) * step < end; index += loads * step) {
    T value[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) value[i] = x[offset_of(reduced, index + i * step)];
#pragma unroll
    for (int i = 0; i < loads; ++i) state = Reducer::fold(state, value[i], index + i * step);
  }
  for (; index < end; index += step) state = Reducer::fold(state, x[offset_of(reduced, index)], index);
  return state;
}

// How the reduced elements are split: `count` chunks of `size` elements. With one chunk, results are written
// directly, otherwise states go to `partial`, where the chunks of an output are adjacent.
struct Chunks {
  std::int64_t count, size;
};

template <class Reducer>
__device__ void store(const Layout<2>& kept, typename Reducer::State* partial, typename Reducer::Result* out,
                      std::int64_t output, std::int64_t chunk, std::int64_t chunks,
                      const typename Reducer::State& state) {
  if (chunks > 1)
    partial[output * chunks + chunk] = state;
  else
    out[kept.offsets(output)[0]] = Reducer::finish(state);
}

template <class Reducer, class T>
__global__ void __launch_bounds__(threads)
    rows_kernel(Layout<2> kept, Layout<1> reduced, Chunks chunks, int width, typename Reducer::State* partial,
                typename Reducer::Result* out, const T* __restrict__ x) {
  const std::int64_t tasks = kept.numel * chunks.count;
  const int teams = threads / width;
  for (std::int64_t base = std::int64_t{blockIdx.x} * teams; base < tasks;
       base += std::int64_t{gridDim.x} * teams) {
    const std::int64_t task = base + threadIdx.x / width;
    const std::int64_t output = task / chunks.count, chunk = task % chunks.count;
    auto state = Reducer::initial();
    if (task < tasks)
      state = fold_strided<Reducer>(reduced, x + kept.offsets(output)[1],
                                    chunk * chunks.size + threadIdx.x % width,
                                    min((chunk + 1) * chunks.size, reduced.numel), width);
    state = merge_team<Reducer>(state, width);
    if (task < tasks && threadIdx.x % width == 0)
      store<Reducer>(kept, partial, out, output, chunk, chunks.count, state);
  }
}

template <class Reducer, class T>
__global__ void __launch_bounds__(threads)
    columns_kernel(Layout<2> kept, Layout<1> reduced, Chunks chunks, typename Reducer::State* partial,
                   typename Reducer::Result* out, const T* __restrict__ x) {
  using State = typename Reducer::State;
  __shared__ alignas(State) unsigned char memory[sizeof(State) * threads];
  State* shared = reinterpret_cast<State*>(memory);
  const int lane = threadIdx.x % warp_size, team = threadIdx.x / warp_size;
  const std::int64_t chunk = blockIdx.y;
  for (std::int64_t base = std::int64_t{blockIdx.x} * warp_size; base < kept.numel;
       base += std::int64_t{gridDim.x} * warp_size) {
    const std::int64_t output = base + lane;
    if (output < kept.numel)
      shared[threadIdx.x] =
          fold_strided<Reducer>(reduced, x + kept.offsets(output)[1], chunk * chunks.size + team,
                                min((chunk + 1) * chunks.size, reduced.numel), column_teams);
    __syncthreads();
    if (team == 0 && output < kept.numel) {
      State state = shared[lane];
      for (int other = 1; other < column_teams; ++other)
        state = Reducer::merge(state, shared[other * warp_size + lane]);
      store<Reducer>(kept, partial, out, output, chunk, chunks.count, state);
    }
    __syncthreads();
  }
}

// The second pass: one team per output merges the states of its chunks.
template <class Reducer>
__global__ void __launch_bounds__(threads)
    merge_kernel(Layout<2> kept, std::int64_t chunks, int width,
                 const typename Reducer::State* __restrict__ partial, typename Reducer::Result* out) {
  const int teams = threads / width;
  for (std::int64_t base = std::int64_t{blockIdx.x} * teams; base < kept.numel;
       base += std::int64_t{gridDim.x} * teams) {
    const std::int64_t output = base + threadIdx.x / width;
    auto state = Reducer::initial();
    if (output < kept.numel)
      for (std::int64_t chunk = threadIdx.x % width; chunk < chunks; chunk += width)
        state = Reducer::merge(state, partial[output * chunks + chunk]);
    state = merge_team<Reducer>(state, width);
    if (output < kept.numel && threadIdx.x % width == 0)
      out[kept.offsets(output)[0]] = Reducer::finish(state);
  }
}

std::int64_t divide_up(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

// The number of threads per `count` elements: a power of two, a few elements per thread.
int team_width(std::int64_t count) {
  int width = 1;
  while (width < threads && width * 4 < count) width *= 2;
  return width;
}

// Enough chunks to launch about `target_blocks` blocks, none shorter than `min_size` elements.
Chunks split_into_chunks(std::int64_t count, std::int64_t blocks, std::int64_t min_size) {
  constexpr std::int64_t target_blocks = 2048;
  const std::int64_t max_chunks = std::max<std::int64_t>(count / min_size, 1);
  const std::int64_t chunks = std::clamp<std::int64_t>(divide_up(target_blocks, blocks), 1, max_chunks);
  const std::int64_t size = std::max<std::int64_t>(divide_up(count, chunks), 1);
  return {std::max<std::int64_t>(divide_up(count, size), 1), size};
}

template <class Reducer, class T>
void reduce_cuda(const Layout<2>& kept, const Layout<1>& reduced, bool by_reduced,
                 typename Reducer::Result* out, const T* x, StreamView stream) {
  using State = typename Reducer::State;
  const bool by_rows =
      kept.numel == 1 || reduced.strides[0][reduced.rank - 1] <= kept.strides[1][kept.rank - 1];
  const std::int64_t column_blocks = divide_up(kept.numel, warp_size);
  const Chunks chunks =
      by_rows ? split_into_chunks(reduced.numel, by_reduced ? 1 : kept.numel, 4096)
              : split_into_chunks(reduced.numel, by_reduced ? 1 : column_blocks, 16 * column_teams);
  Buffer memory;
  if (chunks.count > 1)
    memory = Buffer(static_cast<std::size_t>(kept.numel * chunks.count) * sizeof(State), stream);
  auto* partial = reinterpret_cast<State*>(memory.data());
  if (by_rows) {
    const int width = team_width(chunks.size);
    rows_kernel<Reducer>
        <<<blocks_for(kept.numel * chunks.count, threads / width), threads, 0, cuda_stream(stream)>>>(
            kept, reduced, chunks, width, partial, out, x);
  } else {
    const dim3 grid(blocks_for(kept.numel, warp_size), static_cast<unsigned>(chunks.count));
    columns_kernel<Reducer>
        <<<grid, threads, 0, cuda_stream(stream)>>>(kept, reduced, chunks, partial, out, x);
  }
  check_launch("reduce kernel");
  if (chunks.count == 1) return;
  const int width = team_width(chunks.count);
  merge_kernel<Reducer><<<blocks_for(kept.numel, threads / width), threads, 0, cuda_stream(stream)>>>(
      kept, chunks.count, width, partial, out);
  check_launch("reduce merge kernel");
}

template <class T>
__global__ void __launch_bounds__(threads)
    scatter_to_argmax(Layout<2> kept, Layout<1> reduced, T* out, const T* values, const std::int64_t* index) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < kept.numel; i += step) {
    const auto offset = kept.offsets(i);
    out[offset[1] + offset_of(reduced, index[i])] = values[offset[0]];
  }
}

}  // namespace

template <>
void reduce_kernel<Backend::cuda>(Reduction reduction, DType dtype, const Layout<2>& kept,
                                  const Layout<1>& reduced, bool by_reduced, std::byte* out,
                                  const std::byte* x, StreamView stream) {
  on_dtype(AllTypes{}, dtype, "reduce", [&]<class T>() {
    on_reduction<T>(reduction, [&]<class Reducer>(Reducer) {
      reduce_cuda<Reducer>(kept, reduced, by_reduced, reinterpret_cast<typename Reducer::Result*>(out),
                           reinterpret_cast<const T*>(x), stream);
    });
  });
}

template <>
void scatter_to_argmax_kernel<Backend::cuda>(DType dtype, const Layout<2>& kept, const Layout<1>& reduced,
                                             std::byte* out, const std::byte* values,
                                             const std::int64_t* index, StreamView stream) {
  on_dtype(AllTypes{}, dtype, "max", [&]<class T>() {
    scatter_to_argmax<<<blocks_for(kept.numel, threads), threads, 0, cuda_stream(stream)>>>(
        kept, reduced, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(values), index);
  });
  check_launch("scatter to argmax kernel");
}

}  // namespace tandem::detail
