// The passes of batch normalization on CUDA over all values: sums per channel and what is computed from them.
// They are memory-bound, so every pass moves 16 bytes per thread and reads its operands once. Per-channel
// values are in the compute type of the plan's dtype.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/device/cuda.h"
#include "tandem/ops/conv/batch_norm_kernel.h"

namespace tandem::detail::batch_norm_passes {

inline constexpr int threads = 256;

// How a pass over (rows, channels) is partitioned. The threads of a block cover `lanes` adjacent packs of
// channels and threads / lanes rows at a time. blockIdx.x counts the parts of a batch's rows, blockIdx.y
// groups of lanes, blockIdx.z batches. The rows of a batch are cut into `waves`, one after the other; the
// parts of a wave take turns at its rows, so that blocks that run at the same time read adjacent rows.
struct Partition {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  std::int64_t batch_rows = 0;  // of the largest batch
  std::int64_t batches = 1;
  int packs = 0;
  int lanes = 1;
  int parts = 1;  // of all waves
  int waves = 1;
  std::int64_t wave_rows = 0;
  bool by_shard = false;  // the batches are the own shards
  BatchNormShards shards = {};

  // Where the rows of a batch begin.
  constexpr std::int64_t begin_of(std::int64_t batch) const {
    return by_shard ? shards.begin_of(batch) : batch * batch_rows;
  }
};

// The blocks of a pass that a multiprocessor runs at once: partitions are multiples of them, because a last
// wave of few blocks leaves much of the memory's bandwidth unused.
inline constexpr int forward_blocks = 4;
int gradient_blocks(const BatchNormPlan& plan, const BatchNormBackward& args);

// All rows are a batch, or ghost batches. For passes that sum: one wave.
Partition partition_sums(const BatchNormPlan& plan, int resident_blocks, Device device);
// The same for passes that compute each value: several waves if there are enough rows.
Partition partition_values(const BatchNormPlan& plan, int resident_blocks, Device device);
// Depends on the shards of the whole batch, not on which of them are here, and so do the bits of sums.
Partition partition_shards(const BatchNormPlan& plan, const BatchNormShards& shards, int resident_blocks,
                           Device device);

// The number of values in the partial sums of a partition, (batches, parts, 2, channels).
inline std::int64_t partial_count(const Partition& partition) {
  return partition.batches * 2 * partition.parts * partition.channels;
}

// Partial sums of x − x₀ and (x − x₀)², where x₀ is the first value of the channel in its batch.
void sum_moments(const BatchNormPlan& plan, const Partition& partition, std::byte* partial,
                 const std::byte* x, StreamView stream);

// Normalizes each batch by its row of mean and inverse_deviation.
void apply_moments(const BatchNormPlan& plan, const Partition& partition, const BatchNormForward& args,
                   StreamView stream);

// What a gradient needs of a channel. `step` is the distance of the means and deviations of two batches.
struct ChannelValues {
  const std::byte* mean;
  const std::byte* inverse_deviation;
  const std::byte* weight;
  const std::byte* bias;
  std::int64_t step = 0;
};

// The values of `args`, with zeros in place of those that are null. `zeros` has statistics × channels values,
// which are cleared if they are needed.
ChannelValues channel_values_of(const BatchNormPlan& plan, const BatchNormBackward& args,
                                std::int64_t statistics, std::byte* zeros, StreamView stream);

// Partial sums of g and g · (x − mean), where g is dy after the gradient of the activation. Writes g to
// args.dresidual unless it is null.
void sum_gradients(const BatchNormPlan& plan, const Partition& partition, std::byte* partial,
                   const BatchNormBackward& args, const ChannelValues& channel_values, StreamView stream);

// The factors of dx = weight · inverse deviation · g + b · (x − mean) + c, `step` from batch to batch.
struct Factors {
  std::byte *b, *c;
  std::int64_t step = 0;
};

// Writes args.dx. sum_gradients() must have written args.dresidual unless it is null.
void write_input_gradient(const BatchNormPlan& plan, const Partition& partition,
                          const BatchNormBackward& args, const ChannelValues& channel_values,
                          const Factors& factors, StreamView stream);

// A block of the kernels that reduce partial sums handles this many channels of a batch.
inline constexpr int reduced_channels = 8;

// The blocks for all channels of one batch.
constexpr std::int64_t reduce_groups(std::int64_t channels) {
  return (channels + reduced_channels - 1) / reduced_channels;
}

#ifdef __CUDACC__
// Reduces the parts of one batch in a fixed order; all threads of the block call it. Threads below
// reduced_channels get the sums of channel first_channel + threadIdx.x, where that exists.
template <class C>
__device__ void reduce_parts(const C* __restrict__ partial, int parts, std::int64_t channels,
                             std::int64_t first_channel, double& first, double& second) {
  constexpr int part_lanes = threads / reduced_channels, warps = threads / 32;
  const int lane = static_cast<int>(threadIdx.x) % reduced_channels;
  first = second = 0;
  if (first_channel + lane < channels) {
    const C* const from = partial + first_channel + lane;
#pragma unroll 8
    for (int part = static_cast<int>(threadIdx.x) / reduced_channels; part < parts; part += part_lanes) {
      first += static_cast<double>(from[2 * part * channels]);
      second += static_cast<double>(from[(2 * part + 1) * channels]);
    }
  }
  for (int mask = 16; mask >= reduced_channels; mask /= 2) {
    first += __shfl_xor_sync(0xffffffffu, first, mask);
    second += __shfl_xor_sync(0xffffffffu, second, mask);
  }
  __shared__ double shared[2][warps][reduced_channels];
  if (threadIdx.x % 32 < reduced_channels) {
    shared[0][threadIdx.x / 32][lane] = first;
    shared[1][threadIdx.x / 32][lane] = second;
  }
  __syncthreads();
  if (threadIdx.x < reduced_channels)
    for (int warp = 1; warp < warps; ++warp) {
      first += shared[0][warp][lane];
      second += shared[1][warp][lane];
    }
  __syncthreads();  // the next call may write
}
#endif

}  // namespace tandem::detail::batch_norm_passes
