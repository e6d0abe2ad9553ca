// Batch normalization on CUDA. Forward in training: partial sums per channel over parts of the rows, a small
// kernel that reduces the parts to mean, deviation and running statistics, and a pass that applies them.
// Backward likewise. Parts are reduced in a fixed order, so the bits are the same in every run.
#include "tandem/core/on_dtype.h"
#include "tandem/device/buffer.h"
#include "tandem/ops/conv/batch_norm_passes.cuh"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

using namespace batch_norm_passes;

template <class T, class C>
__global__ void __launch_bounds__(threads)
    reduce_moments(const C* partial, int parts, BatchNormPlan plan, const T* x, C* running_mean,
                   C* running_variance, C* mean, C* inverse_deviation, std::int64_t* batches_tracked) {
  if (batches_tracked && blockIdx.x == 0 && threadIdx.x == 0) *batches_tracked += plan.batches();
  const std::int64_t first_channel = std::int64_t{blockIdx.x} * reduced_channels,
                     channel = first_channel + threadIdx.x;
  const double momentum = plan.options.momentum;
  for (std::int64_t batch = 0; batch < plan.batches(); ++batch) {
    double sum, squares;
    reduce_parts(partial + batch * 2 * plan.channels * parts, parts, plan.channels, first_channel, sum,
                 squares);
    if (threadIdx.x >= reduced_channels || channel >= plan.channels) continue;
    const std::int64_t first = batch * plan.batch_rows(), at = batch * plan.channels + channel;
    const auto count = static_cast<double>(min(plan.batch_rows(), plan.rows - first));
    const double offset = sum / count, center = convert<C>(x[first * plan.channels + channel]) + offset;
    const double variance = fmax(squares / count - offset * offset, 0.0);
    mean[at] = static_cast<C>(center);
    inverse_deviation[at] = static_cast<C>(1 / sqrt(variance + plan.options.epsilon));
    running_mean[channel] = static_cast<C>((1 - momentum) * running_mean[channel] + momentum * center);
    running_variance[channel] = static_cast<C>((1 - momentum) * running_variance[channel] +
                                               momentum * (variance * count / (count - 1)));
  }
}

template <class C>
__global__ void __launch_bounds__(threads)
    load_running_statistics(BatchNormPlan plan, const C* running_mean, const C* running_variance, C* mean,
                            C* inverse_deviation) {
  const std::int64_t channel = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (channel >= plan.channels) return;
  mean[channel] = running_mean[channel];
  inverse_deviation[channel] =
      static_cast<C>(1 / sqrt(static_cast<double>(running_variance[channel]) + plan.options.epsilon));
}

template <class C>
__global__ void __launch_bounds__(threads)
    reduce_gradients(const C* partial, int parts, BatchNormPlan plan, const C* weight,
                     const C* inverse_deviation, C* dweight, C* dbias, C* b, C* c) {
  const std::int64_t first_channel = std::int64_t{blockIdx.x} * reduced_channels,
                     channel = first_channel + threadIdx.x;
  double sum, product;
  reduce_parts(partial, parts, plan.channels, first_channel, sum, product);
  if (threadIdx.x >= reduced_channels || channel >= plan.channels) return;
  const double inverse = inverse_deviation[channel], scale = weight[channel] * inverse;
  const auto count = static_cast<double>(plan.rows);
  if (dbias) dbias[channel] = static_cast<C>(sum);
  if (dweight) dweight[channel] = static_cast<C>(product * inverse);
  b[channel] = static_cast<C>(plan.options.training ? -scale * inverse * inverse * product / count : 0);
  c[channel] = static_cast<C>(plan.options.training ? -scale * sum / count : 0);
}

unsigned reduce_grid(std::int64_t channels) {
  return static_cast<unsigned>(reduce_groups(channels));
}

}  // namespace

template <>
void batch_norm_kernel<Backend::cuda>(const BatchNormPlan& plan, const BatchNormForward& args,
                                      StreamView stream) {
  const cudaStream_t launch_stream = cuda_stream(stream);
  on_dtype(FloatTypes{}, plan.dtype, "batch_norm", [&]<class T>() {
    using C = ComputeType<T>;
    auto* const mean = reinterpret_cast<C*>(args.mean);
    auto* const inverse = reinterpret_cast<C*>(args.inverse_deviation);
    auto* const running_mean = reinterpret_cast<C*>(args.running_mean);
    auto* const running_variance = reinterpret_cast<C*>(args.running_variance);
    if (plan.options.training) {
      const Partition partition = partition_sums(plan, forward_blocks, stream.device);
      const Buffer partial(static_cast<std::size_t>(partial_count(partition)) * sizeof(C), stream);
      sum_moments(plan, partition, partial.data(), args.x, stream);
      reduce_moments<T, C><<<reduce_grid(plan.channels), threads, 0, launch_stream>>>(
          reinterpret_cast<const C*>(partial.data()), partition.parts, plan,
          reinterpret_cast<const T*>(args.x), running_mean, running_variance, mean, inverse,
          args.batches_tracked);
    } else {
      load_running_statistics<C><<<blocks_for(plan.channels, threads), threads, 0, launch_stream>>>(
          plan, running_mean, running_variance, mean, inverse);
    }
    check_launch("batch_norm statistics");
  });
  apply_moments(plan, partition_values(plan, forward_blocks, stream.device), args, stream);
}

template <>
void batch_norm_gradient_kernel<Backend::cuda>(const BatchNormPlan& plan, const BatchNormBackward& args,
                                               StreamView stream) {
  const int blocks = gradient_blocks(plan, args);
  const Partition partition = partition_sums(plan, blocks, stream.device);
  on_dtype(FloatTypes{}, plan.dtype, "batch_norm", [&]<class T>() {
    using C = ComputeType<T>;
    const Buffer memory(static_cast<std::size_t>((2 * partition.parts + 3) * plan.channels) * sizeof(C),
                        stream);
    C* const sums = reinterpret_cast<C*>(memory.data());
    C* const b = sums + 2 * partition.parts * plan.channels;
    C *const c = b + plan.channels, *const zeros = c + plan.channels;
    const ChannelValues values =
        channel_values_of(plan, args, 1, reinterpret_cast<std::byte*>(zeros), stream);
    sum_gradients(plan, partition, memory.data(), args, values, stream);
    reduce_gradients<C><<<reduce_grid(plan.channels), threads, 0, cuda_stream(stream)>>>(
        sums, partition.parts, plan, reinterpret_cast<const C*>(values.weight),
        reinterpret_cast<const C*>(values.inverse_deviation), reinterpret_cast<C*>(args.dweight),
        reinterpret_cast<C*>(args.dbias), b, c);
    check_launch("batch_norm gradient factors");
    if (args.dx)
      write_input_gradient(plan, partition_values(plan, blocks, stream.device), args, values,
                           {.b = reinterpret_cast<std::byte*>(b), .c = reinterpret_cast<std::byte*>(c)},
                           stream);
  });
}

}  // namespace tandem::detail
