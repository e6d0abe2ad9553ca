// Mixup and CutMix on CUDA: one thread per byte, so that the reads and writes of a warp are contiguous.
#include "tandem/augment/mix_kernel.h"
#include "tandem/device/cuda.h"

namespace tandem::detail {
namespace {

constexpr int threads = 256;

__global__ void mix_images(MixBatch batch, std::int64_t bytes) {
  const std::int64_t at = blockIdx.y * std::int64_t{threads} + threadIdx.x;
  if (at < bytes) batch.out[blockIdx.x * bytes + at] = batch.level(blockIdx.x, at);
}

}  // namespace

template <>
void mix_kernel<Backend::cuda>(const MixBatch& batch, StreamView stream) {
  const std::int64_t bytes = std::int64_t{batch.height} * batch.width * batch.channels;
  if (bytes > std::int64_t{65535} * threads)
    throw Error("[mix] expected images of at most 16776960 bytes on a GPU");
  const dim3 blocks(static_cast<unsigned>(batch.count),
                    static_cast<unsigned>((bytes + threads - 1) / threads));
  mix_images<<<blocks, threads, 0, cuda_stream(stream)>>>(batch, bytes);
  check_launch("mix");
}

}  // namespace tandem::detail
