// Batch normalization on CUDA of a part of a batch that is cut into shards: one pass sums all own shards,
// each in parts that depend on the shards of the batch alone, and small kernels join the sums in the order of
// the shards.
#include "tandem/core/on_dtype.h"
#include "tandem/device/buffer.h"
#include "tandem/ops/conv/batch_norm_passes.cuh"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

using namespace batch_norm_passes;

// The values of one shard after the other, without a division for each: those of a shard are the quotient or
// one row more.
struct ShardValues {
  std::int64_t quotient, remainder;  // of the rows of the batch by its shards
  std::int64_t shards, row_values;

  explicit ShardValues(const BatchNormShards& of)
      : quotient(of.rows / of.shards),
        remainder(of.rows % of.shards),
        shards(of.shards),
        row_values(of.row_values) {}

  template <class F>
  __device__ void for_each(F&& f) const {
    std::int64_t carry = 0;
    for (std::int64_t shard = 0; shard < shards; ++shard) {
      carry += remainder;
      const bool one_more = carry >= shards;
      if (one_more) carry -= shards;
      f(shard, static_cast<double>((quotient + (one_more ? 1 : 0)) * row_values));
    }
  }
};

// The own shard and the channels of a block that reduces, and the channel of a thread that gets the sums.
struct ReducePosition {
  std::int64_t shard, first_channel, channel;

  __device__ explicit ReducePosition(std::int64_t channels) {
    const std::int64_t groups = reduce_groups(channels);
    shard = blockIdx.x / groups, first_channel = blockIdx.x % groups * reduced_channels;
    channel = first_channel + threadIdx.x;
  }
};

unsigned reduce_grid(const BatchNormShards& shards, std::int64_t channels) {
  return static_cast<unsigned>(shards.own.count() * reduce_groups(channels));
}

template <class T, class C>
__global__ void __launch_bounds__(threads)
    reduce_shard_moments(const C* partial, int parts, BatchNormShards shards, std::int64_t channels,
                         const T* x, double* moments) {
  const auto [shard, first_channel, channel] = ReducePosition(channels);
  const std::int64_t first = shards.begin_of(shard), rows = shards.begin_of(shard + 1) - first;
  if (rows == 0) return;
  double sum, squares;
  reduce_parts(partial + shard * 2 * channels * parts, parts, channels, first_channel, sum, squares);
  if (threadIdx.x >= reduced_channels || channel >= channels) return;
  const double offset = sum / static_cast<double>(rows);
  double* const to = moments + 2 * shard * channels + channel;
  to[0] = static_cast<double>(convert<C>(x[first * channels + channel])) + offset;
  to[channels] = fmax(squares - sum * offset, 0.0);
}

// What normalizes, from the squared deviations of `count` values.
template <class C>
__device__ C inverse_deviation_of(double squares, double count, double epsilon) {
  return static_cast<C>(1 / sqrt(squares / count + epsilon));
}

// mean and inverse_deviation may be null.
template <class C>
__global__ void __launch_bounds__(threads)
    join_moments(BatchNormPlan plan, ShardValues shards, double count, const double* __restrict__ moments,
                 C* mean, C* inverse_deviation, C* running_mean, C* running_variance,
                 std::int64_t* batches_tracked) {
  const std::int64_t channels = plan.channels;
  const std::int64_t channel = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (batches_tracked && channel == 0) ++*batches_tracked;
  if (channel >= channels) return;
  double center = 0, squares = 0;
  shards.for_each(
      [&](std::int64_t shard, double values) { center += moments[2 * shard * channels + channel] * values; });
  center /= count;
  shards.for_each([&](std::int64_t shard, double values) {
    const double difference = moments[2 * shard * channels + channel] - center;
    squares += moments[(2 * shard + 1) * channels + channel] + difference * difference * values;
  });
  if (mean) {
    mean[channel] = static_cast<C>(center);
    inverse_deviation[channel] = inverse_deviation_of<C>(squares, count, plan.options.epsilon);
  }
  const double momentum = plan.options.momentum;
  running_mean[channel] = static_cast<C>((1 - momentum) * running_mean[channel] + momentum * center);
  running_variance[channel] =
      static_cast<C>((1 - momentum) * running_variance[channel] + momentum * (squares / (count - 1)));
}

// The statistics of each own shard, by its own moments.
template <class C>
__global__ void __launch_bounds__(threads)
    load_shard_statistics(BatchNormPlan plan, BatchNormShards shards, const double* __restrict__ own_moments,
                          C* mean, C* inverse_deviation) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  const std::int64_t shard = i / plan.channels, channel = i % plan.channels;
  if (shard >= shards.own.count()) return;
  const auto count = static_cast<double>(shards.values_of_own(shard));
  if (count == 0) return;
  const double* const from = own_moments + 2 * shard * plan.channels + channel;
  mean[i] = static_cast<C>(from[0]);
  inverse_deviation[i] = inverse_deviation_of<C>(from[plan.channels], count, plan.options.epsilon);
}

// Σ g and Σ g · x̂ of each own shard. `sums`, dweight and dbias may be null.
template <class C>
__global__ void __launch_bounds__(threads)
    reduce_shard_gradients(const C* partial, int parts, BatchNormShards shards, std::int64_t channels,
                           const C* inverse_deviation, std::int64_t step, double* sums, C* dweight,
                           C* dbias) {
  const auto [shard, first_channel, channel] = ReducePosition(channels);
  if (shards.values_of_own(shard) == 0) return;
  double sum, product;
  reduce_parts(partial + shard * 2 * channels * parts, parts, channels, first_channel, sum, product);
  if (threadIdx.x >= reduced_channels || channel >= channels) return;
  product *= inverse_deviation[shard * step + channel];
  if (sums) {
    double* const to = sums + 2 * shard * channels + channel;
    to[0] = sum;
    to[channels] = product;
  }
  if (dweight) dweight[shard * channels + channel] = static_cast<C>(product);
  if (dbias) dbias[shard * channels + channel] = static_cast<C>(sum);
}

// The factors of dx for the statistics `index`, from Σ g and Σ g · x̂ over the `count` values they are of.
template <class C>
struct FactorWriter {
  const C* weight;
  const C* inverse_deviation;
  C *b, *c;

  __device__ void write(std::int64_t index, std::int64_t channel, std::int64_t channels, double sum,
                        double product, double count) const {
    const std::int64_t at = index * channels + channel;
    const double inverse = inverse_deviation[at], scale = weight[channel] * inverse;
    b[at] = static_cast<C>(-scale * inverse * product / count);
    c[at] = static_cast<C>(-scale * sum / count);
  }
};

template <class C>
__global__ void __launch_bounds__(threads)
    join_gradients(BatchNormPlan plan, BatchNormShards shards, const double* __restrict__ sums,
                   FactorWriter<C> factors) {
  const std::int64_t channels = plan.channels;
  const std::int64_t channel = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (channel >= channels) return;
  double sum = 0, product = 0;
  for (std::int64_t shard = 0; shard < shards.shards; ++shard) {
    sum += sums[2 * shard * channels + channel];
    product += sums[(2 * shard + 1) * channels + channel];
  }
  factors.write(0, channel, channels, sum, product, static_cast<double>(shards.values()));
}

// Without `own_sums` the statistics do not depend on x.
template <class C>
__global__ void __launch_bounds__(threads)
    load_shard_factors(BatchNormPlan plan, BatchNormShards shards, const double* __restrict__ own_sums,
                       FactorWriter<C> factors) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  const std::int64_t shard = i / plan.channels, channel = i % plan.channels;
  if (shard >= shards.statistics()) return;
  if (!own_sums) return factors.write(shard, channel, plan.channels, 0, 0, 1);
  const auto count = static_cast<double>(shards.values_of_own(shard));
  if (count == 0) return;
  const double* const from = own_sums + 2 * shard * plan.channels + channel;
  factors.write(shard, channel, plan.channels, from[0], from[plan.channels], count);
}

template <class F>
void on_compute_type(const BatchNormPlan& plan, F&& f) {
  on_dtype(FloatTypes{}, plan.dtype, "batch_norm",
           [&]<class T>() { f.template operator()<T, ComputeType<T>>(); });
}

unsigned thread_grid(std::int64_t count) {
  return blocks_for(count, threads);
}

// Sums of the own shards; `sums` may be null.
template <class C>
void write_sums(const BatchNormPlan& plan, const BatchNormShards& shards, double* sums,
                const BatchNormBackward& args, const ChannelValues& values, StreamView stream) {
  const Partition partition = partition_shards(plan, shards, gradient_blocks(plan, args), stream.device);
  const Buffer partial(static_cast<std::size_t>(partial_count(partition)) * sizeof(C), stream);
  sum_gradients(plan, partition, partial.data(), args, values, stream);
  reduce_shard_gradients<C><<<reduce_grid(shards, plan.channels), threads, 0, cuda_stream(stream)>>>(
      reinterpret_cast<const C*>(partial.data()), partition.parts, shards, plan.channels,
      reinterpret_cast<const C*>(values.inverse_deviation), values.step, sums,
      reinterpret_cast<C*>(args.dweight), reinterpret_cast<C*>(args.dbias));
  check_launch("batch_norm gradient sums of shards");
}

// The memory of factors and of the zeros of channel_values_of().
template <class C>
struct GradientMemory {
  Buffer memory;
  std::int64_t size;  // values of each

  GradientMemory(const BatchNormPlan& plan, const BatchNormShards& shards, StreamView stream)
      : memory(static_cast<std::size_t>(3 * shards.statistics() * plan.channels) * sizeof(C), stream),
        size(shards.statistics() * plan.channels) {}

  C* values(int index) const { return reinterpret_cast<C*>(memory.data()) + index * size; }
  std::byte* bytes(int index) const { return reinterpret_cast<std::byte*>(values(index)); }
  std::byte* zeros() const { return bytes(2); }
  FactorWriter<C> writer(const ChannelValues& channels) const {
    return {reinterpret_cast<const C*>(channels.weight),
            reinterpret_cast<const C*>(channels.inverse_deviation), values(0), values(1)};
  }
  Factors factors(std::int64_t step) const { return {bytes(0), bytes(1), step}; }
};

}  // namespace

template <>
void batch_norm_moments_kernel<Backend::cuda>(const BatchNormPlan& plan, const BatchNormShards& shards,
                                              double* moments, const std::byte* x, StreamView stream) {
  const Partition partition = partition_shards(plan, shards, forward_blocks, stream.device);
  on_compute_type(plan, [&]<class T, class C>() {
    const Buffer partial(static_cast<std::size_t>(partial_count(partition)) * sizeof(C), stream);
    sum_moments(plan, partition, partial.data(), x, stream);
    reduce_shard_moments<T, C><<<reduce_grid(shards, plan.channels), threads, 0, cuda_stream(stream)>>>(
        reinterpret_cast<const C*>(partial.data()), partition.parts, shards, plan.channels,
        reinterpret_cast<const T*>(x), moments);
    check_launch("batch_norm moments of shards");
  });
}

template <>
void batch_norm_joined_kernel<Backend::cuda>(const BatchNormPlan& plan, const BatchNormShards& shards,
                                             const double* moments, const BatchNormForward& args,
                                             StreamView stream) {
  on_compute_type(plan, [&]<class T, class C>() {
    C* const mean = reinterpret_cast<C*>(args.mean);
    C* const inverse_deviation = reinterpret_cast<C*>(args.inverse_deviation);
    join_moments<C><<<thread_grid(plan.channels), threads, 0, cuda_stream(stream)>>>(
        plan, ShardValues(shards), static_cast<double>(shards.values()), moments,
        shards.per_shard ? nullptr : mean, shards.per_shard ? nullptr : inverse_deviation,
        reinterpret_cast<C*>(args.running_mean), reinterpret_cast<C*>(args.running_variance),
        args.batches_tracked);
    check_launch("batch_norm statistics");
    if (!shards.per_shard) return;
    load_shard_statistics<C>
        <<<thread_grid(shards.own.count() * plan.channels), threads, 0, cuda_stream(stream)>>>(
            plan, shards, moments + 2 * shards.own.begin * plan.channels, mean, inverse_deviation);
    check_launch("batch_norm statistics of shards");
  });
  if (plan.rows > 0)
    apply_moments(plan,
                  shards.per_shard ? partition_shards(plan, shards, forward_blocks, stream.device)
                                   : partition_values(plan, forward_blocks, stream.device),
                  args, stream);
}

template <>
void batch_norm_sums_kernel<Backend::cuda>(const BatchNormPlan& plan, const BatchNormShards& shards,
                                           double* sums, const BatchNormBackward& args, StreamView stream) {
  on_compute_type(plan, [&]<class T, class C>() {
    const GradientMemory<C> memory(plan, shards, stream);
    const ChannelValues values = channel_values_of(plan, args, shards.statistics(), memory.zeros(), stream);
    write_sums<C>(plan, shards, sums, args, values, stream);
  });
}

template <>
void batch_norm_joined_gradient_kernel<Backend::cuda>(const BatchNormPlan& plan,
                                                      const BatchNormShards& shards, const double* sums,
                                                      const BatchNormBackward& args, StreamView stream) {
  if (!args.dx) return;
  on_compute_type(plan, [&]<class T, class C>() {
    const GradientMemory<C> memory(plan, shards, stream);
    const ChannelValues values = channel_values_of(plan, args, 1, memory.zeros(), stream);
    join_gradients<C><<<thread_grid(plan.channels), threads, 0, cuda_stream(stream)>>>(plan, shards, sums,
                                                                                       memory.writer(values));
    check_launch("batch_norm gradient factors");
    write_input_gradient(plan, partition_values(plan, gradient_blocks(plan, args), stream.device), args,
                         values, memory.factors(0), stream);
  });
}

template <>
void batch_norm_shard_gradient_kernel<Backend::cuda>(const BatchNormPlan& plan, const BatchNormShards& shards,
                                                     const BatchNormBackward& args, StreamView stream) {
  on_compute_type(plan, [&]<class T, class C>() {
    const GradientMemory<C> memory(plan, shards, stream);
    const ChannelValues values = channel_values_of(plan, args, shards.statistics(), memory.zeros(), stream);
    const bool through_shard = plan.options.training && args.dx;
    const Buffer sums(
        through_shard ? static_cast<std::size_t>(2 * shards.own.count() * plan.channels) * sizeof(double) : 0,
        stream);
    auto* const sum_values = reinterpret_cast<double*>(sums.data());
    if (through_shard || args.dweight || args.dbias || args.dresidual)
      write_sums<C>(plan, shards, sum_values, args, values, stream);
    if (!args.dx) return;
    load_shard_factors<C>
        <<<thread_grid(shards.statistics() * plan.channels), threads, 0, cuda_stream(stream)>>>(
            plan, shards, sum_values, memory.writer(values));
    check_launch("batch_norm gradient factors of shards");
    const int blocks = gradient_blocks(plan, args);
    write_input_gradient(plan,
                         shards.per_shard ? partition_shards(plan, shards, blocks, stream.device)
                                          : partition_values(plan, blocks, stream.device),
                         args, values, memory.factors(values.step), stream);
  });
}

}  // namespace tandem::detail
