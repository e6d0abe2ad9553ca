#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"
#include "tandem/ops/normalize_kernel.h"

namespace tandem::detail {
namespace {

constexpr int threads = 64;           // few, so that one image has blocks for every multiprocessor
constexpr int bytes_per_thread = 12;  // whole pixels of 1, 2, 3 or 4 channels

template <int channels, class T>
__global__ void __launch_bounds__(threads)
    normalize_bytes(std::int64_t count, ChannelAffine affine, T* __restrict__ out,
                    const std::uint8_t* __restrict__ images) {
  static_assert(bytes_per_thread % channels == 0);
  const auto normalized = [&](std::uint8_t byte, int c) {
    return convert<T>(static_cast<float>(byte) * affine.scale[c] + affine.shift[c]);
  };
  const std::int64_t step = std::int64_t{gridDim.x} * threads * bytes_per_thread;
  for (std::int64_t first = (std::int64_t{blockIdx.x} * threads + threadIdx.x) * bytes_per_thread;
       first < count; first += step) {
    if (count - first < bytes_per_thread || !is_aligned<4>(images)) {
      const std::int64_t end = min(count, first + bytes_per_thread);
      for (std::int64_t i = first; i < end; ++i)
        out[i] = normalized(images[i], static_cast<int>((i - first) % channels));
      continue;
    }
    constexpr int width = 4;
    using Values = Pack<T, width>;
#pragma unroll
    for (int i = 0; i < bytes_per_thread; i += width) {
      const auto word = *reinterpret_cast<const std::uint32_t*>(images + first + i);
      Values values;
#pragma unroll
      for (int j = 0; j < width; ++j)
        values.value[j] = normalized(static_cast<std::uint8_t>(word >> (8 * j)), (i + j) % channels);
      *reinterpret_cast<Values*>(out + first + i) = values;
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
    const auto launch = [&]<int of>() {
      normalize_bytes<of, T>
          <<<blocks_for(count, threads * bytes_per_thread), threads, 0, cuda_stream(stream)>>>(
              count, affine, reinterpret_cast<T*>(out), images);
    };
    switch (channels) {
      case 1:
        return launch.template operator()<1>();
      case 2:
        return launch.template operator()<2>();
      case 3:
        return launch.template operator()<3>();
      default:
        return launch.template operator()<4>();
    }
  });
  check_launch("normalize_images");
}

}  // namespace tandem::detail
