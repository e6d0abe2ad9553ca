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
// groups of lanes, blockIdx.z batches.
struct Partition {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  std::int64_t batch_rows = 0;  // of the largest batch
  std::int64_t batches = 1;
  int packs = 0;
  int lanes = 1;
  int parts = 1;
  std::int64_t part_rows = 0;
  bool by_shard = false;  // the batches are the own shards
  BatchNormShards shards = {};

  // Where the rows of a batch begin.
  constexpr std::int64_t begin_of(std::int64_t batch) const {
    return by_shard ? shards.begin_of(batch) : batch * batch_rows;
  }
};

// All rows are a batch, or ghost batches.
Partition partition_rows(const BatchNormPlan& plan, Device device);
// Depends on the shards of the whole batch, not on which of them are here, and so do the bits of sums.
Partition partition_shards(const BatchNormPlan& plan, const BatchNormShards& shards, Device device);

// The number of values in the partial sums of a partition: two per channel, part and batch.
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

// The factors of dx = a · g + b · (x − mean) + c, `step` from batch to batch.
struct Factors {
  std::byte *a, *b, *c;
  std::int64_t step = 0;
};

// Writes args.dx. sum_gradients() must have written args.dresidual unless it is null.
void write_input_gradient(const BatchNormPlan& plan, const Partition& partition,
                          const BatchNormBackward& args, const ChannelValues& channel_values,
                          const Factors& factors, StreamView stream);

#ifdef __CUDACC__
// One warp reduces the parts of one channel. Lane 0 gets the sums.
template <class C>
__device__ void reduce_parts(const C* partial, int parts, std::int64_t channels, std::int64_t channel,
                             double& first, double& second) {
  first = second = 0;
  for (int part = static_cast<int>(threadIdx.x) % 32; part < parts; part += 32) {
    first += static_cast<double>(partial[channel * parts + part]);
    second += static_cast<double>(partial[(channels + channel) * parts + part]);
  }
  for (int mask = 16; mask > 0; mask /= 2) {
    first += __shfl_xor_sync(0xffffffffu, first, mask);
    second += __shfl_xor_sync(0xffffffffu, second, mask);
  }
}
#endif

// The grid that gives each of `count` sums one warp.
inline unsigned warp_grid(std::int64_t count) {
  return static_cast<unsigned>((count * 32 + threads - 1) / threads);
}

}  // namespace tandem::detail::batch_norm_passes
