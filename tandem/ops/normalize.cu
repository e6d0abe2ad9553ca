#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"
#include "tandem/ops/normalize_kernel.h"

namespace tandem::detail {
namespace {

constexpr int threads = 256;
constexpr int bytes_per_thread = 12;  // whole pixels of 1, 2, 3 or 4 channels

template <class T>
__global__ void __launch_bounds__(threads)
    normalize_bytes(std::int64_t count, int channels, ChannelAffine affine, T* __restrict__ out,
                    const std::uint8_t* __restrict__ images) {
  const std::int64_t step = std::int64_t{gridDim.x} * threads * bytes_per_thread;
  for (std::int64_t first = (std::int64_t{blockIdx.x} * threads + threadIdx.x) * bytes_per_thread;
       first < count; first += step) {
    std::uint8_t bytes[bytes_per_thread];
    const int present = static_cast<int>(min(count - first, std::int64_t{bytes_per_thread}));
    if (present == bytes_per_thread) {
#pragma unroll
      for (int i = 0; i < bytes_per_thread; i += 4)
        *reinterpret_cast<std::uint32_t*>(bytes + i) =
            *reinterpret_cast<const std::uint32_t*>(images + first + i);
    } else {
      for (int i = 0; i < present; ++i) bytes[i] = images[first + i];
    }
    for (int i = 0; i < present; ++i) {
      const int c = i % channels;
      out[first + i] = convert<T>(static_cast<float>(bytes[i]) * affine.scale[c] + affine.shift[c]);
    }
  }
}

}  // namespace

template <>
void normalize_kernel<Backend::cuda>(DType dtype, std::int64_t pixels, int channels,
                                     const ChannelAffine& affine, std::byte* out, const std::uint8_t* images,
                                     StreamView stream) {
  const std::int64_t count = pixels * channels;
  on_dtype(TypeList<float, BFloat16>{}, dtype, "normalize_images", [&]<class T>() {
    normalize_bytes<T><<<blocks_for(count, threads * bytes_per_thread), threads, 0, cuda_stream(stream)>>>(
        count, channels, affine, reinterpret_cast<T*>(out), images);
  });
  check_launch("normalize_images");
}

}  // namespace tandem::detail
