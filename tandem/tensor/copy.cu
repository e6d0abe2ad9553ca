#include <algorithm>
#include <cstdint>

#include "tandem/core/error.h"
#include "tandem/device/cuda.h"
#include "tandem/tensor/copy_kernel.h"

namespace tandem::detail {
namespace {

template <class Word>
__global__ void copy_words(Word* to, const Word* from, Layout<2> layout) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < layout.numel; i += step) {
    const auto offsets = layout.offsets(i);
    to[offsets[0]] = from[offsets[1]];
  }
}

template <class Word>
void launch(std::byte* to, const std::byte* from, const Layout<2>& layout, StreamView stream) {
  constexpr int threads = 256;
  const auto blocks = std::min<std::int64_t>((layout.numel + threads - 1) / threads, 1 << 16);
  copy_words<<<static_cast<unsigned>(blocks), threads, 0, cuda_stream(stream)>>>(
      reinterpret_cast<Word*>(to), reinterpret_cast<const Word*>(from), layout);
  check_launch("copy kernel");
}

}  // namespace

template <>
void copy_kernel<Backend::cuda>(std::byte* to, const std::byte* from, std::size_t element_size,
                                const Layout<2>& layout, StreamView stream) {
  switch (element_size) {
    case 1:
      return launch<std::uint8_t>(to, from, layout, stream);
    case 2:
      return launch<std::uint16_t>(to, from, layout, stream);
    case 4:
      return launch<std::uint32_t>(to, from, layout, stream);
    case 8:
      return launch<std::uint64_t>(to, from, layout, stream);
    default:
      expect(false);
  }
}

template <>
void clear_kernel<Backend::cuda>(std::byte* to, std::size_t bytes, StreamView stream) {
  cuda_check(cudaMemsetAsync(to, 0, bytes, cuda_stream(stream)), "cudaMemsetAsync");
}

}  // namespace tandem::detail
