// Batch normalization on CUDA. It is memory-bound, so every pass moves 16 bytes per thread and reads its
// operands once. Forward in training: partial sums per channel over parts of the rows, a small kernel that
// reduces the parts to mean, deviation and running statistics, and a pass that applies them. Backward
// likewise. Parts are reduced in a fixed order, so the bits are the same in every run.
#include "tandem/ops/conv/batch_norm_kernel.h"

#include <algorithm>

#include "tandem/core/on_dtype.h"
#include "tandem/device/buffer.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

constexpr int threads = 256;

// The channels a thread handles at a time. Numbers of channels that are not a multiple use a width of 1.
template <class T>
constexpr int max_width = static_cast<int>(16 / sizeof(T));

// How a pass over (rows, channels) is partitioned. The threads of a block cover `lanes` adjacent packs of
// channels and threads / lanes rows at a time. blockIdx.x counts the parts of a batch's rows, blockIdx.y
// groups of lanes, blockIdx.z batches.
struct Partition {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  std::int64_t batch_rows = 0;
  std::int64_t batches = 1;
  int packs = 0;
  int lanes = 1;
  int parts = 1;
  std::int64_t part_rows = 0;
};

Partition partition_rows(const BatchNormPlan& plan, int width, Device device) {
  Partition partition;
  partition.rows = plan.rows;
  partition.channels = plan.channels;
  partition.batches = plan.batches();
  partition.batch_rows = partition.batches > 1 ? plan.batch_rows() : plan.rows;
  partition.packs = static_cast<int>((plan.channels + width - 1) / width);
  while (partition.lanes < threads && partition.lanes < partition.packs) partition.lanes *= 2;
  const int rows_per_pass = threads / partition.lanes;
  const int groups = (partition.packs + partition.lanes - 1) / partition.lanes;
  const std::int64_t wanted =
      std::max<std::int64_t>(1, std::int64_t{8} * multiprocessor_count(device) / groups / partition.batches);
  constexpr std::int64_t min_passes = 8;  // shorter parts cost more to reduce than they save
  const std::int64_t max_parts =
      std::max<std::int64_t>(1, partition.batch_rows / (rows_per_pass * min_passes));
  partition.parts = static_cast<int>(std::min(wanted, max_parts));
  partition.part_rows = (partition.batch_rows + partition.parts - 1) / partition.parts;
  return partition;
}

dim3 grid_of(const Partition& partition) {
  return dim3(static_cast<unsigned>(partition.parts),
              static_cast<unsigned>((partition.packs + partition.lanes - 1) / partition.lanes),
              static_cast<unsigned>(partition.batches));
}

// The rows of this block.
struct RowRange {
  std::int64_t begin, end;

  __device__ explicit RowRange(const Partition& partition) {
    const std::int64_t batch = blockIdx.z * partition.batch_rows;
    begin = batch + blockIdx.x * partition.part_rows;
    end = min(min(begin + partition.part_rows, batch + partition.batch_rows), partition.rows);
  }
};

// Two sums per channel over the rows of a part: add(offset, first channel, sums) accumulates one pack.
template <int width, class C, class F>
__device__ void sum_part(const Partition& partition, C* __restrict__ partial, F&& add) {
  const int lane =
      static_cast<int>(blockIdx.y) * partition.lanes + static_cast<int>(threadIdx.x) % partition.lanes;
  const int rows_per_pass = threads / partition.lanes,
            row_lane = static_cast<int>(threadIdx.x) / partition.lanes;
  C sums[2][width] = {};
  if (lane < partition.packs) {
    const RowRange rows(partition);
#pragma unroll 4
    for (std::int64_t row = rows.begin + row_lane; row < rows.end; row += rows_per_pass)
      add(row * partition.channels + std::int64_t{lane} * width, lane * width, sums);
  }
  __shared__ C shared[2][width][threads];
#pragma unroll
  for (int s = 0; s < 2; ++s)
#pragma unroll
    for (int i = 0; i < width; ++i) shared[s][i][threadIdx.x] = sums[s][i];
  for (int half = rows_per_pass / 2; half > 0; half /= 2) {
    __syncthreads();
    if (row_lane < half)
#pragma unroll
      for (int s = 0; s < 2; ++s)
#pragma unroll
        for (int i = 0; i < width; ++i)
          shared[s][i][threadIdx.x] += shared[s][i][threadIdx.x + half * partition.lanes];
  }
  if (row_lane == 0 && lane < partition.packs)
#pragma unroll
    for (int s = 0; s < 2; ++s)
#pragma unroll
      for (int i = 0; i < width; ++i)
        partial[((std::int64_t{blockIdx.z} * 2 + s) * partition.channels + lane * width + i) * gridDim.x +
                blockIdx.x] = shared[s][i][threadIdx.x];
}

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

// Sums of x − x₀ and (x − x₀)², where x₀ is the channel's first value: close enough to the mean to avoid
// cancellation.
template <int width, class T, class C>
__global__ void __launch_bounds__(threads)
    sum_moments(Partition partition, C* __restrict__ partial, const T* __restrict__ x) {
  using Values = Pack<T, width>;
  sum_part<width>(partition, partial, [&](std::int64_t at, int channel, C(&sums)[2][width]) {
    const Values values = load_pack<width>(x + at);
    const Values first =
        load_pack<width>(x + blockIdx.z * partition.batch_rows * partition.channels + channel);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const C value = convert<C>(values.value[i]) - convert<C>(first.value[i]);
      sums[0][i] += value;
      sums[1][i] += value * value;
    }
  });
}

template <class T, class C>
__global__ void __launch_bounds__(threads)
    reduce_moments(const C* partial, int parts, BatchNormPlan plan, const T* x, C* running_mean,
                   C* running_variance, C* mean, C* inverse_deviation, std::int64_t* batches_tracked) {
  if (batches_tracked && blockIdx.x == 0 && threadIdx.x == 0) *batches_tracked += plan.batches();
  const std::int64_t channel = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / 32;
  if (channel >= plan.channels) return;
  const double momentum = plan.options.momentum;
  for (std::int64_t batch = 0; batch < plan.batches(); ++batch) {
    double sum, squares;
    reduce_parts(partial + batch * 2 * plan.channels * parts, parts, plan.channels, channel, sum, squares);
    if (threadIdx.x % 32 != 0) continue;
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

// Calls f(first channel, for_rows) once per thread; for_rows(each) calls each(offset of the pack) for every
// row of the part. The channels of a thread do not change, so their parameters are loaded once.
template <int width, class F>
__device__ void for_packs(const Partition& partition, F&& f) {
  const int lane =
      static_cast<int>(blockIdx.y) * partition.lanes + static_cast<int>(threadIdx.x) % partition.lanes;
  const int rows_per_pass = threads / partition.lanes,
            row_lane = static_cast<int>(threadIdx.x) / partition.lanes;
  if (lane >= partition.packs) return;
  const RowRange own(partition);
  f(lane * width, [&](auto&& each) {
#pragma unroll 4
    for (std::int64_t row = own.begin + row_lane; row < own.end; row += rows_per_pass)
      each(row * partition.channels + std::int64_t{lane} * width);
  });
}

template <int width, bool has_residual, bool relu, class T, class C>
__global__ void __launch_bounds__(threads)
    normalize(Partition partition, T* __restrict__ y, const T* __restrict__ x, const T* __restrict__ residual,
              const C* __restrict__ weight, const C* __restrict__ bias, const C* __restrict__ mean,
              const C* __restrict__ inverse_deviation) {
  using Values = Pack<T, width>;
  for_packs<width>(partition, [&](int channel, auto&& rows) {
    C center[width], scale[width], shift[width];
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const std::int64_t at = blockIdx.z * partition.channels + channel + i;
      center[i] = mean[at];
      scale[i] = weight[channel + i] * inverse_deviation[at];
      shift[i] = bias[channel + i];
    }
    rows([&](std::int64_t at) {
      Values values = load_pack<width>(x + at);
      [[maybe_unused]] Values others = values;
      if constexpr (has_residual) others = load_pack<width>(residual + at);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        C value = (convert<C>(values.value[i]) - center[i]) * scale[i] + shift[i];
        if constexpr (has_residual) value += convert<C>(others.value[i]);
        if constexpr (relu) value = value < 0 ? C{0} : value;
        values.value[i] = convert<T>(value);
      }
      store_pack(y + at, values);
    });
  });
}

// What decides where the ReLU passes the gradient: there is no ReLU, the sign of y, or the sign of y
// recomputed from x.
enum class ReluMask { none, from_y, from_x };

// Per-channel values in global memory.
template <class C>
struct ChannelValues {
  const C* mean;
  const C* inverse_deviation;
  const C* weight;
  const C* bias;
};

// The same for the channels of one thread, in registers.
template <int width, class C>
struct ThreadChannels {
  C center[width], scale[width], shift[width];

  __device__ ThreadChannels(const ChannelValues<C>& channel_values, int channel) {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      center[i] = channel_values.mean[channel + i];
      scale[i] = channel_values.weight[channel + i] * channel_values.inverse_deviation[channel + i];
      shift[i] = channel_values.bias[channel + i];
    }
  }
  // g where the ReLU passes it, else 0.
  template <ReluMask mask, class T>
  __device__ C relu_gradient(C g, C x, T y, int i) const {
    if constexpr (mask == ReluMask::from_y) return convert<C>(y) > 0 ? g : C{0};
    if constexpr (mask == ReluMask::from_x) return (x - center[i]) * scale[i] + shift[i] > 0 ? g : C{0};
    return g;
  }
};

// Sums of g and g · (x − mean), where g is dy after the gradient of the ReLU. writes: g is stored in
// dresidual.
template <int width, ReluMask mask, bool writes, class T, class C>
__global__ void __launch_bounds__(threads)
    sum_gradients(Partition partition, C* __restrict__ partial, T* __restrict__ dresidual,
                  const T* __restrict__ dy, const T* __restrict__ x, const T* __restrict__ y,
                  ChannelValues<C> channel_values) {
  using Values = Pack<T, width>;
  const int lane =
      static_cast<int>(blockIdx.y) * partition.lanes + static_cast<int>(threadIdx.x) % partition.lanes;
  const ThreadChannels<width, C> own(channel_values, lane < partition.packs ? lane * width : 0);
  sum_part<width>(partition, partial, [&](std::int64_t at, int, C(&sums)[2][width]) {
    Values gradient = load_pack<width>(dy + at);
    const Values values = load_pack<width>(x + at);
    [[maybe_unused]] Values results = values;
    if constexpr (mask == ReluMask::from_y) results = load_pack<width>(y + at);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const C value = convert<C>(values.value[i]);
      const C g = own.template relu_gradient<mask>(convert<C>(gradient.value[i]), value, results.value[i], i);
      if constexpr (writes) gradient.value[i] = convert<T>(g);
      sums[0][i] += g;
      sums[1][i] += g * (value - own.center[i]);
    }
    if constexpr (writes) store_pack(dresidual + at, gradient);
  });
}

// The factors of dx = a · g + b · (x − mean) + c.
template <class C>
struct Factors {
  C *a, *b, *c;
};

template <class C>
__global__ void __launch_bounds__(threads)
    reduce_gradients(const C* partial, int parts, BatchNormPlan plan, const C* weight,
                     const C* inverse_deviation, C* dweight, C* dbias, Factors<C> factors) {
  const std::int64_t channel = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / 32;
  if (channel >= plan.channels) return;
  double sum, product;
  reduce_parts(partial, parts, plan.channels, channel, sum, product);
  if (threadIdx.x % 32 != 0) return;
  const double inverse = inverse_deviation[channel], scale = weight[channel] * inverse;
  const auto count = static_cast<double>(plan.rows);
  if (dbias) dbias[channel] = static_cast<C>(sum);
  if (dweight) dweight[channel] = static_cast<C>(product * inverse);
  factors.a[channel] = static_cast<C>(scale);
  factors.b[channel] =
      static_cast<C>(plan.options.training ? -scale * inverse * inverse * product / count : 0);
  factors.c[channel] = static_cast<C>(plan.options.training ? -scale * sum / count : 0);
}

template <int width, ReluMask mask, class T, class C>
__global__ void __launch_bounds__(threads)
    input_gradient(Partition partition, T* __restrict__ dx, const T* __restrict__ dy, const T* __restrict__ x,
                   const T* __restrict__ y, ChannelValues<C> channel_values, Factors<C> factors) {
  using Values = Pack<T, width>;
  for_packs<width>(partition, [&](int channel, auto&& rows) {
    const ThreadChannels<width, C> own(channel_values, channel);
    C a[width], b[width], c[width];
#pragma unroll
    for (int i = 0; i < width; ++i)
      a[i] = factors.a[channel + i], b[i] = factors.b[channel + i], c[i] = factors.c[channel + i];
    rows([&](std::int64_t at) {
      const Values gradient = load_pack<width>(dy + at);
      Values values = load_pack<width>(x + at);
      [[maybe_unused]] Values results = values;
      if constexpr (mask == ReluMask::from_y) results = load_pack<width>(y + at);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const C value = convert<C>(values.value[i]);
        const C g =
            own.template relu_gradient<mask>(convert<C>(gradient.value[i]), value, results.value[i], i);
        values.value[i] = convert<T>(a[i] * g + b[i] * (value - own.center[i]) + c[i]);
      }
      store_pack(dx + at, values);
    });
  });
}

// The grid that gives each channel one warp.
unsigned warp_grid(std::int64_t channels) {
  return static_cast<unsigned>((channels * 32 + threads - 1) / threads);
}

// Calls f.operator()<T, C, width>() with the widest packs that divide the channels.
template <class F>
void on_width(const BatchNormPlan& plan, F&& f) {
  on_dtype(FloatTypes{}, plan.dtype, "batch_norm", [&]<class T>() {
    using C = ComputeType<T>;
    if (plan.channels % max_width<T> == 0)
      f.template operator()<T, C, max_width<T>>();
    else
      f.template operator()<T, C, 1>();
  });
}

template <class F>
void on_relu_mask(ReluMask mask, F&& f) {
  switch (mask) {
    case ReluMask::none:
      return f.template operator()<ReluMask::none>();
    case ReluMask::from_y:
      return f.template operator()<ReluMask::from_y>();
    case ReluMask::from_x:
      return f.template operator()<ReluMask::from_x>();
  }
}

template <class F>
void on_flags(bool first, bool second, F&& f) {
  const auto with = [&]<bool a>() {
    second ? f.template operator()<a, true>() : f.template operator()<a, false>();
  };
  first ? with.template operator()<true>() : with.template operator()<false>();
}

}  // namespace

template <>
void batch_norm_kernel<Backend::cuda>(const BatchNormPlan& plan, const BatchNormForward& args,
                                      StreamView stream) {
  const cudaStream_t launch_stream = cuda_stream(stream);
  on_width(plan, [&]<class T, class C, int width>() {
    const auto* x = reinterpret_cast<const T*>(args.x);
    auto* const mean = reinterpret_cast<C*>(args.mean);
    auto* const inverse = reinterpret_cast<C*>(args.inverse_deviation);
    auto* const running_mean = reinterpret_cast<C*>(args.running_mean);
    auto* const running_variance = reinterpret_cast<C*>(args.running_variance);
    const Partition partition = partition_rows(plan, width, stream.device);
    if (plan.options.training) {
      const Buffer partial(
          static_cast<std::size_t>(partition.batches * 2 * partition.parts * plan.channels) * sizeof(C),
          stream);
      auto* const sums = reinterpret_cast<C*>(partial.data());
      sum_moments<width, T, C><<<grid_of(partition), threads, 0, launch_stream>>>(partition, sums, x);
      check_launch("batch_norm sums");
      reduce_moments<T, C><<<warp_grid(plan.channels), threads, 0, launch_stream>>>(
          sums, partition.parts, plan, x, running_mean, running_variance, mean, inverse,
          args.batches_tracked);
      check_launch("batch_norm statistics");
    } else {
      load_running_statistics<C><<<blocks_for(plan.channels, threads), threads, 0, launch_stream>>>(
          plan, running_mean, running_variance, mean, inverse);
      check_launch("batch_norm statistics");
    }
    on_flags(args.residual != nullptr, plan.options.relu, [&]<bool has_residual, bool relu>() {
      normalize<width, has_residual, relu, T, C><<<grid_of(partition), threads, 0, launch_stream>>>(
          partition, reinterpret_cast<T*>(args.y), x, reinterpret_cast<const T*>(args.residual),
          reinterpret_cast<const C*>(args.weight), reinterpret_cast<const C*>(args.bias), mean, inverse);
    });
    check_launch("batch_norm");
  });
}

template <>
void batch_norm_gradient_kernel<Backend::cuda>(const BatchNormPlan& plan, const BatchNormBackward& args,
                                               StreamView stream) {
  const cudaStream_t launch_stream = cuda_stream(stream);
  on_width(plan, [&]<class T, class C, int width>() {
    const auto* dy = reinterpret_cast<const T*>(args.dy);
    const auto* x = args.x ? reinterpret_cast<const T*>(args.x) : dy;  // read, but without effect
    const auto* y = reinterpret_cast<const T*>(args.y);
    auto* const dresidual = reinterpret_cast<T*>(args.dresidual);
    const Partition partition = partition_rows(plan, width, stream.device);
    const Buffer memory(static_cast<std::size_t>((2 * partition.parts + 4) * plan.channels) * sizeof(C),
                        stream);
    auto* const sums = reinterpret_cast<C*>(memory.data());
    C* const factor_memory = sums + 2 * partition.parts * plan.channels;
    const Factors<C> factors{factor_memory, factor_memory + plan.channels, factor_memory + 2 * plan.channels};
    C* const zeros = factor_memory + 3 * plan.channels;  // in place of values that are null
    if (!args.weight || !args.mean || !args.inverse_deviation)
      cuda_check(
          cudaMemsetAsync(zeros, 0, static_cast<std::size_t>(plan.channels) * sizeof(C), launch_stream),
          "cudaMemsetAsync");
    const auto or_zeros = [&](const std::byte* values) -> const C* {
      return values ? reinterpret_cast<const C*>(values) : zeros;
    };
    const ChannelValues<C> channel_values{or_zeros(args.mean), or_zeros(args.inverse_deviation),
                                          or_zeros(args.weight), or_zeros(args.bias)};
    const ReluMask mask = !plan.options.relu ? ReluMask::none
                          : args.bias        ? ReluMask::from_x
                                             : ReluMask::from_y;
    on_relu_mask(mask, [&]<ReluMask how>() {
      if (dresidual)
        sum_gradients<width, how, true, T, C><<<grid_of(partition), threads, 0, launch_stream>>>(
            partition, sums, dresidual, dy, x, y, channel_values);
      else
        sum_gradients<width, how, false, T, C><<<grid_of(partition), threads, 0, launch_stream>>>(
            partition, sums, nullptr, dy, x, y, channel_values);
    });
    check_launch("batch_norm gradient sums");
    reduce_gradients<C><<<warp_grid(plan.channels), threads, 0, launch_stream>>>(
        sums, partition.parts, plan, channel_values.weight, channel_values.inverse_deviation,
        reinterpret_cast<C*>(args.dweight), reinterpret_cast<C*>(args.dbias), factors);
    check_launch("batch_norm gradient factors");
    if (!args.dx) return;
    // dresidual already includes the gradient of the ReLU.
    on_relu_mask(dresidual ? ReluMask::none : mask, [&]<ReluMask how>() {
      input_gradient<width, how, T, C><<<grid_of(partition), threads, 0, launch_stream>>>(
          partition, reinterpret_cast<T*>(args.dx), dresidual ? dresidual : dy, x, y, channel_values,
          factors);
    });
    check_launch("batch_norm gradient");
  });
}

}  // namespace tandem::detail
