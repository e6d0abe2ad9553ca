#include "tandem/ops/conv/batch_norm_passes.cuh"

#include <algorithm>

#include "tandem/core/on_dtype.h"
#include "tandem/ops/activation.cuh"
#include "tandem/ops/elementwise.cuh"
#include "tandem/ops/fused_activation_kernel.h"

namespace tandem::detail::batch_norm_passes {
namespace {

// The channels a thread handles at a time. Numbers of channels that are not a multiple use a width of 1.
template <class T>
constexpr int max_width = static_cast<int>(16 / sizeof(T));

// The activation whose gradient is taken, and whether the sign of y or the argument, recomputed from x,
// decides.
enum class Slope { none, relu_of_y, relu_of_x, silu_of_x, hardswish_of_x };

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
void on_slope(Slope slope, F&& f) {
  switch (slope) {
    case Slope::none:
      return f.template operator()<Slope::none>();
    case Slope::relu_of_y:
      return f.template operator()<Slope::relu_of_y>();
    case Slope::relu_of_x:
      return f.template operator()<Slope::relu_of_x>();
    case Slope::silu_of_x:
      return f.template operator()<Slope::silu_of_x>();
    case Slope::hardswish_of_x:
      return f.template operator()<Slope::hardswish_of_x>();
  }
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
    const std::int64_t batch = blockIdx.z;
    begin = partition.begin_of(batch) + blockIdx.x * partition.part_rows;
    end = min(min(begin + partition.part_rows, partition.begin_of(batch + 1)), partition.rows);
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

// Sums of x − x₀ and (x − x₀)², where x₀ is the channel's first value: close enough to the mean to avoid
// cancellation.
template <int width, class T, class C>
__global__ void __launch_bounds__(threads)
    moments_kernel(Partition partition, C* __restrict__ partial, const T* __restrict__ x) {
  using Values = Pack<T, width>;
  const T* const batch = x + partition.begin_of(blockIdx.z) * partition.channels;
  sum_part<width>(partition, partial, [&](std::int64_t at, int channel, C(&sums)[2][width]) {
    const Values values = load_pack<width>(x + at);
    const Values first = load_pack<width>(batch + channel);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const C value = convert<C>(values.value[i]) - convert<C>(first.value[i]);
      sums[0][i] += value;
      sums[1][i] += value * value;
    }
  });
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

template <int width, bool has_residual, FusedActivation activation, class T, class C>
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
        values.value[i] = convert<T>(activate_value<Backend::cuda, activation>(value));
      }
      store_pack(y + at, values);
    });
  });
}

// Per-channel values in global memory.
template <class C>
struct TypedValues {
  const C* mean;
  const C* inverse_deviation;
  const C* weight;
  const C* bias;
  std::int64_t step;

  explicit TypedValues(const ChannelValues& values)
      : mean(reinterpret_cast<const C*>(values.mean)),
        inverse_deviation(reinterpret_cast<const C*>(values.inverse_deviation)),
        weight(reinterpret_cast<const C*>(values.weight)),
        bias(reinterpret_cast<const C*>(values.bias)),
        step(values.step) {}
};

// The same for the channels of one thread, in registers.
template <int width, class C>
struct ThreadChannels {
  C center[width], scale[width], shift[width];

  __device__ ThreadChannels(const TypedValues<C>& values, int channel) {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const std::int64_t at = blockIdx.z * values.step + channel + i;
      center[i] = values.mean[at];
      scale[i] = values.weight[channel + i] * values.inverse_deviation[at];
      shift[i] = values.bias[channel + i];
    }
  }
  // g times the slope of the activation.
  template <Slope slope, class T>
  __device__ C activation_gradient(C g, C x, T y, int i) const {
    constexpr auto cuda = Backend::cuda;
    if constexpr (slope == Slope::relu_of_y) return convert<C>(y) > 0 ? g : C{0};
    const C argument = (x - center[i]) * scale[i] + shift[i];
    if constexpr (slope == Slope::relu_of_x) return argument > 0 ? g : C{0};
    if constexpr (slope == Slope::silu_of_x) return SiluGradient<cuda>{}(g, argument);
    if constexpr (slope == Slope::hardswish_of_x) return HardswishGradient{}(g, argument);
    return g;
  }
};

// Sums of g and g · (x − mean), where g is dy after the gradient of the activation. writes: g is stored in
// dresidual.
template <int width, Slope slope, bool writes, class T, class C>
__global__ void __launch_bounds__(threads)
    gradient_sums_kernel(Partition partition, C* __restrict__ partial, T* __restrict__ dresidual,
                         const T* __restrict__ dy, const T* __restrict__ x, const T* __restrict__ y,
                         TypedValues<C> channel_values) {
  using Values = Pack<T, width>;
  const int lane =
      static_cast<int>(blockIdx.y) * partition.lanes + static_cast<int>(threadIdx.x) % partition.lanes;
  const ThreadChannels<width, C> own(channel_values, lane < partition.packs ? lane * width : 0);
  sum_part<width>(partition, partial, [&](std::int64_t at, int, C(&sums)[2][width]) {
    Values gradient = load_pack<width>(dy + at);
    const Values values = load_pack<width>(x + at);
    [[maybe_unused]] Values results = values;
    if constexpr (slope == Slope::relu_of_y) results = load_pack<width>(y + at);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const C value = convert<C>(values.value[i]);
      const C g =
          own.template activation_gradient<slope>(convert<C>(gradient.value[i]), value, results.value[i], i);
      if constexpr (writes) gradient.value[i] = convert<T>(g);
      sums[0][i] += g;
      sums[1][i] += g * (value - own.center[i]);
    }
    if constexpr (writes) store_pack(dresidual + at, gradient);
  });
}

template <class C>
struct TypedFactors {
  const C *a, *b, *c;
  std::int64_t step;

  explicit TypedFactors(const Factors& factors)
      : a(reinterpret_cast<const C*>(factors.a)),
        b(reinterpret_cast<const C*>(factors.b)),
        c(reinterpret_cast<const C*>(factors.c)),
        step(factors.step) {}
};

template <int width, Slope slope, class T, class C>
__global__ void __launch_bounds__(threads)
    input_gradient_kernel(Partition partition, T* __restrict__ dx, const T* __restrict__ dy,
                          const T* __restrict__ x, const T* __restrict__ y, TypedValues<C> channel_values,
                          TypedFactors<C> factors) {
  using Values = Pack<T, width>;
  for_packs<width>(partition, [&](int channel, auto&& rows) {
    const ThreadChannels<width, C> own(channel_values, channel);
    C a[width], b[width], c[width];
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const std::int64_t at = blockIdx.z * factors.step + channel + i;
      a[i] = factors.a[at], b[i] = factors.b[at], c[i] = factors.c[at];
    }
    rows([&](std::int64_t at) {
      const Values gradient = load_pack<width>(dy + at);
      Values values = load_pack<width>(x + at);
      [[maybe_unused]] Values results = values;
      if constexpr (slope == Slope::relu_of_y) results = load_pack<width>(y + at);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const C value = convert<C>(values.value[i]);
        const C g = own.template activation_gradient<slope>(convert<C>(gradient.value[i]), value,
                                                            results.value[i], i);
        values.value[i] = convert<T>(a[i] * g + b[i] * (value - own.center[i]) + c[i]);
      }
      store_pack(dx + at, values);
    });
  });
}

int width_of(const BatchNormPlan& plan) {
  int result = 1;
  on_width(plan, [&]<class T, class C, int width>() { result = width; });
  return result;
}

// Parts of the rows of a batch for about `blocks` blocks.
void divide_batch(Partition& partition, std::int64_t blocks) {
  const int rows_per_pass = threads / partition.lanes;
  constexpr std::int64_t min_passes = 8;  // shorter parts cost more to reduce than they save
  const std::int64_t max_parts =
      std::max<std::int64_t>(1, partition.batch_rows / (rows_per_pass * min_passes));
  partition.parts = static_cast<int>(std::min(std::max<std::int64_t>(1, blocks), max_parts));
  partition.part_rows = (partition.batch_rows + partition.parts - 1) / partition.parts;
}

Partition partition_channels(const BatchNormPlan& plan) {
  const int width = width_of(plan);
  Partition partition;
  partition.rows = plan.rows;
  partition.channels = plan.channels;
  partition.packs = static_cast<int>((plan.channels + width - 1) / width);
  while (partition.lanes < threads && partition.lanes < partition.packs) partition.lanes *= 2;
  return partition;
}

int lane_groups(const Partition& partition) {
  return (partition.packs + partition.lanes - 1) / partition.lanes;
}

Slope slope_of(const BatchNormPlan& plan, const BatchNormBackward& args) {
  switch (plan.options.activation) {
    case FusedActivation::relu:
      return args.bias ? Slope::relu_of_x : Slope::relu_of_y;
    case FusedActivation::silu:
      return Slope::silu_of_x;
    case FusedActivation::hardswish:
      return Slope::hardswish_of_x;
    case FusedActivation::none:
      break;
  }
  return Slope::none;
}

// x is read, but without effect, where it is null.
template <class T>
const T* values_or_gradient(const BatchNormBackward& args) {
  return reinterpret_cast<const T*>(args.x ? args.x : args.dy);
}

}  // namespace

Partition partition_rows(const BatchNormPlan& plan, Device device) {
  Partition partition = partition_channels(plan);
  partition.batches = plan.batches();
  partition.batch_rows = partition.batches > 1 ? plan.batch_rows() : plan.rows;
  divide_batch(partition,
               std::int64_t{8} * multiprocessor_count(device) / lane_groups(partition) / partition.batches);
  return partition;
}

Partition partition_shards(const BatchNormPlan& plan, const BatchNormShards& shards, Device device) {
  Partition partition = partition_channels(plan);
  partition.by_shard = true;
  partition.shards = shards;
  partition.batches = shards.own.count();
  partition.batch_rows = (shards.rows + shards.shards - 1) / shards.shards * shards.row_values;
  divide_batch(partition, std::int64_t{4} * multiprocessor_count(device) / lane_groups(partition));
  return partition;
}

void sum_moments(const BatchNormPlan& plan, const Partition& partition, std::byte* partial,
                 const std::byte* x, StreamView stream) {
  on_width(plan, [&]<class T, class C, int width>() {
    moments_kernel<width, T, C><<<grid_of(partition), threads, 0, cuda_stream(stream)>>>(
        partition, reinterpret_cast<C*>(partial), reinterpret_cast<const T*>(x));
  });
  check_launch("batch_norm sums");
}

void apply_moments(const BatchNormPlan& plan, const Partition& partition, const BatchNormForward& args,
                   StreamView stream) {
  on_width(plan, [&]<class T, class C, int width>() {
    const auto launch = [&](auto kernel) {
      kernel<<<grid_of(partition), threads, 0, cuda_stream(stream)>>>(
          partition, reinterpret_cast<T*>(args.y), reinterpret_cast<const T*>(args.x),
          reinterpret_cast<const T*>(args.residual), reinterpret_cast<const C*>(args.weight),
          reinterpret_cast<const C*>(args.bias), reinterpret_cast<const C*>(args.mean),
          reinterpret_cast<const C*>(args.inverse_deviation));
    };
    on_fused_activation(plan.options.activation, [&]<FusedActivation activation>() {
      if (args.residual)
        launch(normalize<width, true, activation, T, C>);
      else
        launch(normalize<width, false, activation, T, C>);
    });
  });
  check_launch("batch_norm");
}

ChannelValues channel_values_of(const BatchNormPlan& plan, const BatchNormBackward& args,
                                std::int64_t statistics, std::byte* zeros, StreamView stream) {
  const std::size_t size = plan.dtype == DType::f64 ? sizeof(double) : sizeof(float);
  if (!args.weight || !args.mean || !args.inverse_deviation)
    cuda_check(cudaMemsetAsync(zeros, 0, static_cast<std::size_t>(statistics * plan.channels) * size,
                               cuda_stream(stream)),
               "cudaMemsetAsync");
  const auto or_zeros = [&](const std::byte* values) { return values ? values : zeros; };
  return {or_zeros(args.mean), or_zeros(args.inverse_deviation), or_zeros(args.weight), or_zeros(args.bias),
          statistics > 1 ? plan.channels : 0};
}

void sum_gradients(const BatchNormPlan& plan, const Partition& partition, std::byte* partial,
                   const BatchNormBackward& args, const ChannelValues& channel_values, StreamView stream) {
  on_width(plan, [&]<class T, class C, int width>() {
    const auto launch = [&](auto kernel) {
      kernel<<<grid_of(partition), threads, 0, cuda_stream(stream)>>>(
          partition, reinterpret_cast<C*>(partial), reinterpret_cast<T*>(args.dresidual),
          reinterpret_cast<const T*>(args.dy), values_or_gradient<T>(args),
          reinterpret_cast<const T*>(args.y), TypedValues<C>(channel_values));
    };
    on_slope(slope_of(plan, args), [&]<Slope how>() {
      if (args.dresidual)
        launch(gradient_sums_kernel<width, how, true, T, C>);
      else
        launch(gradient_sums_kernel<width, how, false, T, C>);
    });
  });
  check_launch("batch_norm gradient sums");
}

void write_input_gradient(const BatchNormPlan& plan, const Partition& partition,
                          const BatchNormBackward& args, const ChannelValues& channel_values,
                          const Factors& factors, StreamView stream) {
  on_width(plan, [&]<class T, class C, int width>() {
    // dresidual already includes the gradient of the activation.
    on_slope(args.dresidual ? Slope::none : slope_of(plan, args), [&]<Slope how>() {
      input_gradient_kernel<width, how, T, C><<<grid_of(partition), threads, 0, cuda_stream(stream)>>>(
          partition, reinterpret_cast<T*>(args.dx),
          reinterpret_cast<const T*>(args.dresidual ? args.dresidual : args.dy), values_or_gradient<T>(args),
          reinterpret_cast<const T*>(args.y), TypedValues<C>(channel_values), TypedFactors<C>(factors));
    });
  });
  check_launch("batch_norm gradient");
}

}  // namespace tandem::detail::batch_norm_passes
