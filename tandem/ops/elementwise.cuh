// The CUDA kernels of element-wise operations: dense operands are accessed in 16-byte vectors, others element
// by element through the layout. Functors must be named types, because nvcc rejects device lambdas inside
// generic ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "tandem/core/dtype.h"
#include "tandem/device/cuda.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/pack.cuh"
#include "tandem/tensor/layout.h"

namespace tandem::detail {

inline constexpr int elementwise_threads = 256;

// The grid size for `count` items, `per_block` per block; kernels use grid-stride loops, so it is capped.
inline unsigned blocks_for(std::int64_t count, int per_block) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((count + per_block - 1) / per_block, 1, 1 << 20));
}

template <int width, class F, class Out, class... In>
__global__ void __launch_bounds__(elementwise_threads)
    dense_kernel(F f, std::int64_t count, Out* __restrict__ out, const In* __restrict__... in) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t packs = count / width;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (std::int64_t p = first; p < packs; p += step) {
    Pack<Out, width> result;
    [&](const Pack<In, width>... operand) {
#pragma unroll
      for (int i = 0; i < width; ++i)
        result.value[i] = convert<Out>(f(convert<ComputeType<In>>(operand.value[i])...));
    }(reinterpret_cast<const Pack<In, width>*>(in)[p]...);
    reinterpret_cast<Pack<Out, width>*>(out)[p] = result;
  }
  for (std::int64_t i = packs * width + first; i < count; i += step)
    out[i] = convert<Out>(f(convert<ComputeType<In>>(in[i])...));
}

template <class F, class Out, class... In, std::size_t... I>
__device__ void strided_element(F f, const std::array<std::int64_t, 1 + sizeof...(In)>& offset,
                                std::index_sequence<I...>, Out* out, const In*... in) {
  out[offset[0]] = convert<Out>(f(convert<ComputeType<In>>(in[offset[I + 1]])...));
}

template <class F, class Out, class... In>
__global__ void __launch_bounds__(elementwise_threads)
    strided_kernel(F f, Layout<1 + sizeof...(In)> layout, Out* out, const In*... in) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < layout.numel; i += step)
    strided_element(f, layout.offsets(i), std::index_sequence_for<In...>{}, out, in...);
}

// out[…] = f(in[…], …) over the layout, whose operand 0 is the output.
template <class F, class Out, class... In>
void elementwise_cuda(F f, const Layout<1 + sizeof...(In)>& layout, StreamView stream, Out* out,
                      const In*... in) {
  constexpr std::size_t max_size = std::max({sizeof(Out), sizeof(In)...});
  constexpr int width = static_cast<int>(16 / max_size);
  if (layout.numel == 0) return;
  if (layout.all_dense() && is_aligned<width>(out) && (is_aligned<width>(in) && ...)) {
    const unsigned blocks = blocks_for(layout.numel, elementwise_threads * width);
    dense_kernel<width><<<blocks, elementwise_threads, 0, cuda_stream(stream)>>>(f, layout.numel, out, in...);
  } else {
    const unsigned blocks = blocks_for(layout.numel, elementwise_threads);
    strided_kernel<<<blocks, elementwise_threads, 0, cuda_stream(stream)>>>(f, layout, out, in...);
  }
  check_launch("element-wise kernel");
}

}  // namespace tandem::detail
