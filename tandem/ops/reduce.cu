// Reductions on CUDA. Work is cut into chunks by the shape alone and threads are joined in a fixed tree, so
// the same input gives the same bits on every run; nothing is added atomically. Where the reduced axes are
// the inner ones, the threads of a row's team read neighbouring elements; where they are the outer ones,
// neighbouring threads read neighbouring outputs. A reduction to few outputs takes two passes: partial states
// in a buffer, then one that merges them. Sums are held in f64, which a data-centre GPU adds faster than
// memory delivers.
#include "tandem/ops/reduce.h"

#include <algorithm>

#include "tandem/device/buffer.h"
#include "tandem/ops/elementwise.cuh"
#include "tandem/ops/reducers.h"

namespace tandem {
namespace {

constexpr int threads = 256;
constexpr int warp = 32;
constexpr int column_teams = threads / warp;  // rows of threads in a block of the columns kernel

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

// Joins the states of `width` neighbouring threads (a power of two, at most the block); the team's first
// thread gets the result. Every thread of the block must call it.
template <class Reducer>
__device__ typename Reducer::State join_team(typename Reducer::State state, int width) {
  using State = typename Reducer::State;
  __shared__ alignas(State) unsigned char memory[sizeof(State) * threads / warp];
  State* shared = reinterpret_cast<State*>(memory);
  for (int mask = min(width, warp) / 2; mask > 0; mask /= 2)
    state = Reducer::merge(state, shuffle_xor(state, mask));
  if (width > warp) {
    if (threadIdx.x % warp == 0) shared[threadIdx.x / warp] = state;
    __syncthreads();
    if (threadIdx.x % width == 0)
      for (int other = 1; other < width / warp; ++other)
        state = Reducer::merge(state, shared[threadIdx.x / warp + other]);
    __syncthreads();
  }
  return state;
}

__device__ inline std::int64_t offset_of(const Layout<1>& reduced, std::int64_t index) {
  return reduced.rank == 1 ? index * reduced.strides[0][0] : reduced.offsets(index)[0];
}

// Folds every `step`-th element from `first` on; four loads are in flight at a time.
template <class Reducer, class T>
__device__ typename Reducer::State fold_some(const Layout<1>& reduced, const T* __restrict__ x,
                                             std::int64_t first, std::int64_t end, std::int64_t step) {
  constexpr int ahead = 4;
  auto state = Reducer::initial();
  std::int64_t index = first;
  for (; index + (ahead - 1) * step < end; index += ahead * step) {
    T value[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) value[i] = x[offset_of(reduced, index + i * step)];
#pragma unroll
    for (int i = 0; i < ahead; ++i) state = Reducer::fold(state, value[i], index + i * step);
  }
  for (; index < end; index += step) state = Reducer::fold(state, x[offset_of(reduced, index)], index);
  return state;
}

// How the reduced elements are cut: `chunks` pieces of `size`. With one chunk results are written straight
// away, else states go to `partial`, the chunks of an output side by side.
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
      state =
          fold_some<Reducer>(reduced, x + kept.offsets(output)[1], chunk * chunks.size + threadIdx.x % width,
                             min((chunk + 1) * chunks.size, reduced.numel), width);
    state = join_team<Reducer>(state, width);
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
  const int lane = threadIdx.x % warp, team = threadIdx.x / warp;
  const std::int64_t chunk = blockIdx.y;
  for (std::int64_t base = std::int64_t{blockIdx.x} * warp; base < kept.numel;
       base += std::int64_t{gridDim.x} * warp) {
    const std::int64_t output = base + lane;
    if (output < kept.numel)
      shared[threadIdx.x] =
          fold_some<Reducer>(reduced, x + kept.offsets(output)[1], chunk * chunks.size + team,
                             min((chunk + 1) * chunks.size, reduced.numel), column_teams);
    __syncthreads();
    if (team == 0 && output < kept.numel) {
      State state = shared[lane];
      for (int other = 1; other < column_teams; ++other)
        state = Reducer::merge(state, shared[other * warp + lane]);
      store<Reducer>(kept, partial, out, output, chunk, chunks.count, state);
    }
    __syncthreads();
  }
}

// The second pass: a team an output joins the states of its chunks.
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
    state = join_team<Reducer>(state, width);
    if (output < kept.numel && threadIdx.x % width == 0)
      out[kept.offsets(output)[0]] = Reducer::finish(state);
  }
}

std::int64_t pieces(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

// Threads that share `count` elements: a few elements each, a power of two.
int team_width(std::int64_t count) {
  int width = 1;
  while (width < threads && width * 4 < count) width *= 2;
  return width;
}

// As many chunks as give the device `wanted_blocks` of work, none shorter than `least` elements.
Chunks cut(std::int64_t count, std::int64_t blocks, std::int64_t least) {
  constexpr std::int64_t wanted_blocks = 2048;
  const std::int64_t most = std::max<std::int64_t>(count / least, 1);
  const std::int64_t wanted = std::clamp<std::int64_t>(pieces(wanted_blocks, blocks), 1, most);
  const std::int64_t size = std::max<std::int64_t>(pieces(count, wanted), 1);
  return {std::max<std::int64_t>(pieces(count, size), 1), size};
}

template <class Reducer, class T>
void reduce_cuda(const Layout<2>& kept, const Layout<1>& reduced, typename Reducer::Result* out, const T* x,
                 StreamView stream) {
  using State = typename Reducer::State;
  const bool by_rows =
      kept.numel == 1 || reduced.strides[0][reduced.rank - 1] <= kept.strides[1][kept.rank - 1];
  const std::int64_t column_blocks = pieces(kept.numel, warp);
  const Chunks chunks =
      by_rows ? cut(reduced.numel, kept.numel, 4096) : cut(reduced.numel, column_blocks, 16 * column_teams);
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
    const dim3 grid(blocks_for(kept.numel, warp), static_cast<unsigned>(chunks.count));
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
    place_elements(Layout<2> kept, Layout<1> reduced, T* out, const T* values, const std::int64_t* index) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < kept.numel; i += step) {
    const auto offset = kept.offsets(i);
    out[offset[1] + offset_of(reduced, index[i])] = values[offset[0]];
  }
}

}  // namespace

template <>
void reduce_kernel<Backend::cuda>(Reduction reduction, DType dtype, const Layout<2>& kept,
                                  const Layout<1>& reduced, std::byte* out, const std::byte* x,
                                  StreamView stream) {
  on_dtype(AllTypes{}, dtype, "reduce", [&]<class T>() {
    const auto run = [&]<class Reducer>(Reducer) {
      reduce_cuda<Reducer>(kept, reduced, reinterpret_cast<typename Reducer::Result*>(out),
                           reinterpret_cast<const T*>(x), stream);
    };
    switch (reduction) {
      case Reduction::sum:
        return run(SumReducer<T>{});
      case Reduction::max:
        return run(MaxReducer<T>{});
      case Reduction::argmax:
        return run(ArgmaxReducer<T>{});
    }
  });
}

template <>
void place_kernel<Backend::cuda>(DType dtype, const Layout<2>& kept, const Layout<1>& reduced, std::byte* out,
                                 const std::byte* values, const std::int64_t* index, StreamView stream) {
  on_dtype(AllTypes{}, dtype, "place", [&]<class T>() {
    place_elements<<<blocks_for(kept.numel, threads), threads, 0, cuda_stream(stream)>>>(
        kept, reduced, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(values), index);
  });
  check_launch("place kernel");
}

}  // namespace tandem
