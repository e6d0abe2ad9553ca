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

// Slopes of x need more registers.
constexpr int blocks_of(Slope slope) {
  return slope == Slope::none || slope == Slope::relu_of_y ? 4 : 3;
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

// The lane and the row lane of a thread.
struct ThreadPosition {
  int lane, row_lane, rows_per_pass;

  __device__ explicit ThreadPosition(const Partition& partition) {
    const int thread = static_cast<int>(threadIdx.x);
    lane = static_cast<int>(blockIdx.y) * partition.lanes + thread % partition.lanes;
    row_lane = thread / partition.lanes;
    rows_per_pass = threads / partition.lanes;
  }
};

// Sums walk backward through the rows and what follows them walks forward: the rows that were written or
// read last are still in the L2 cache.
enum class Direction { forward, backward };

// The packs of a thread. Indices have 32 bits, which needs fewer registers.
struct PackWalk {
  std::uint32_t first, step;
  int count;

  __device__ PackWalk(const Partition& partition, const ThreadPosition& at, Direction direction) {
    const std::int64_t batch = blockIdx.z;
    const int wave_parts = partition.parts / partition.waves, part = static_cast<int>(blockIdx.x);
    const std::int64_t begin = partition.begin_of(batch) + part / wave_parts * partition.wave_rows;
    const std::int64_t end =
        min(min(begin + partition.wave_rows, partition.begin_of(batch + 1)), partition.rows);
    const std::int64_t row = begin + part % wave_parts * at.rows_per_pass + at.row_lane;
    const std::int64_t row_step = std::int64_t{wave_parts} * at.rows_per_pass;
    const bool has_rows = at.lane < partition.packs && row < end;
    count = has_rows ? static_cast<int>((end - row + row_step - 1) / row_step) : 0;
    first = static_cast<std::uint32_t>(row * partition.packs + at.lane);
    step = static_cast<std::uint32_t>(row_step * partition.packs);
    if (direction == Direction::forward) return;
    first += static_cast<std::uint32_t>(count - 1) * step;
    step = 0u - step;
  }
  // Calls use(index, load(index)) for every pack. `unroll` loads are in flight at once.
  template <int unroll, class L, class F>
  __device__ void for_each(L&& load, F&& use) const {
    std::uint32_t at = first;
    int i = 0;
    for (; i + unroll <= count; i += unroll) {
      decltype(load(at)) loaded[unroll];
#pragma unroll
      for (int k = 0; k < unroll; ++k) loaded[k] = load(at + k * step);
#pragma unroll
      for (int k = 0; k < unroll; ++k) use(at + k * step, loaded[k]);
      at += unroll * step;
    }
    for (; i < count; ++i) {
      use(at, load(at));
      at += step;
    }
  }
};

// What one step of a pass loads: packs at the same offset.
template <int width, class T, int count>
struct Packs {
  Pack<T, width> of[count];
};

template <int width, class T>
__device__ Pack<T, width>& pack_at(T* values, std::uint32_t index) {
  return reinterpret_cast<Pack<T, width>*>(values)[index];
}

template <int width, class T>
__device__ const Pack<T, width>& pack_at(const T* values, std::uint32_t index) {
  return reinterpret_cast<const Pack<T, width>*>(values)[index];
}

// Loads values of adjacent channels.
template <int width, class C>
__device__ void load_channels(C (&to)[width], const C* from) {
  constexpr int pack = width * sizeof(C) < 16 ? width : static_cast<int>(16 / sizeof(C));
  if (is_aligned<pack>(from)) {
#pragma unroll
    for (int i = 0; i < width; i += pack) {
      const auto values = load_pack<pack>(from + i);
#pragma unroll
      for (int j = 0; j < pack; ++j) to[i + j] = values.value[j];
    }
  } else {
#pragma unroll
    for (int i = 0; i < width; ++i) to[i] = from[i];
  }
}

// Two sums per channel over the rows of a part: f(first channel, walk, sums) accumulates those of a thread
// that has rows.
template <int width, class C, class F>
__device__ void sum_part(const Partition& partition, C* __restrict__ partial, F&& f) {
  const ThreadPosition at(partition);
  C sums[2][width] = {};
  if (const PackWalk walk(partition, at, Direction::backward); walk.count > 0) f(at.lane * width, walk, sums);
  __shared__ C shared[2][width][threads];
#pragma unroll
  for (int s = 0; s < 2; ++s)
#pragma unroll
    for (int i = 0; i < width; ++i) shared[s][i][threadIdx.x] = sums[s][i];
  for (int half = at.rows_per_pass / 2; half > 0; half /= 2) {
    __syncthreads();
    if (at.row_lane < half)
#pragma unroll
      for (int s = 0; s < 2; ++s)
#pragma unroll
        for (int i = 0; i < width; ++i)
          shared[s][i][threadIdx.x] += shared[s][i][threadIdx.x + half * partition.lanes];
  }
  __syncthreads();
  // (batches, parts, 2, channels): adjacent threads write adjacent channels.
  const int own = partition.lanes * width;
  const std::int64_t first = std::int64_t{blockIdx.y} * own;
  C* const to = partial + (std::int64_t{blockIdx.z} * gridDim.x + blockIdx.x) * 2 * partition.channels;
  for (int i = static_cast<int>(threadIdx.x); i < 2 * own; i += threads) {
    const int s = i / own, channel = i % own;
    if (first + channel < partition.channels)
      to[s * partition.channels + first + channel] = shared[s][channel % width][channel / width];
  }
}

// Sums of x − x₀ and (x − x₀)², where x₀ is the channel's first value: close enough to the mean to avoid
// cancellation.
template <int width, class T, class C>
__global__ void __launch_bounds__(threads, forward_blocks)
    moments_kernel(Partition partition, C* __restrict__ partial, const T* __restrict__ x) {
  using Values = Pack<T, width>;
  const T* const batch = x + partition.begin_of(blockIdx.z) * partition.channels;
  sum_part<width>(partition, partial, [&](int channel, const PackWalk& walk, C(&sums)[2][width]) {
    const Values first = load_pack<width>(batch + channel);
    C center[width];
#pragma unroll
    for (int i = 0; i < width; ++i) center[i] = convert<C>(first.value[i]);
    walk.template for_each<6>([&](std::uint32_t at) { return pack_at<width>(x, at); },
                              [&](std::uint32_t, const Values& values) {
#pragma unroll
                                for (int i = 0; i < width; ++i) {
                                  const C value = convert<C>(values.value[i]) - center[i];
                                  sums[0][i] += value;
                                  sums[1][i] += value * value;
                                }
                              });
  });
}

// Calls f(first channel, walk) for threads that have rows. The channels of a thread do not change, so their
// parameters are loaded once.
template <int width, class F>
__device__ void for_packs(const Partition& partition, F&& f) {
  const ThreadPosition at(partition);
  if (const PackWalk walk(partition, at, Direction::forward); walk.count > 0) f(at.lane * width, walk);
}

template <int width, bool has_residual, FusedActivation activation, class T, class C>
__global__ void __launch_bounds__(threads, forward_blocks)
    normalize(Partition partition, T* __restrict__ y, const T* __restrict__ x, const T* __restrict__ residual,
              const C* __restrict__ weight, const C* __restrict__ bias, const C* __restrict__ mean,
              const C* __restrict__ inverse_deviation) {
  using Values = Pack<T, width>;
  for_packs<width>(partition, [&](int channel, const PackWalk& walk) {
    C center[width], scale[width], shift[width], inverse[width];
    const std::int64_t own = blockIdx.z * partition.channels + channel;
    load_channels(center, mean + own);
    load_channels(scale, weight + channel);
    load_channels(shift, bias + channel);
    load_channels(inverse, inverse_deviation + own);
#pragma unroll
    for (int i = 0; i < width; ++i) scale[i] *= inverse[i];
    using Loaded = Packs<width, T, has_residual ? 2 : 1>;
    const auto load = [&](std::uint32_t at) {
      Loaded loaded;
      loaded.of[0] = pack_at<width>(x, at);
      if constexpr (has_residual) loaded.of[1] = pack_at<width>(residual, at);
      return loaded;
    };
    walk.template for_each<has_residual ? 2 : 4>(load, [&](std::uint32_t at, const Loaded& loaded) {
      Values values = loaded.of[0];
#pragma unroll
      for (int i = 0; i < width; ++i) {
        C value = (convert<C>(values.value[i]) - center[i]) * scale[i] + shift[i];
        if constexpr (has_residual) value += convert<C>(loaded.of[1].value[i]);
        values.value[i] = convert<T>(activate_value<Backend::cuda, activation>(value));
      }
      pack_at<width>(y, at) = values;
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
    const std::int64_t own = blockIdx.z * values.step + channel;
    C inverse[width];
    load_channels(center, values.mean + own);
    load_channels(scale, values.weight + channel);
    load_channels(shift, values.bias + channel);
    load_channels(inverse, values.inverse_deviation + own);
#pragma unroll
    for (int i = 0; i < width; ++i) scale[i] *= inverse[i];
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

// What a step of the gradient loads.
template <int width, Slope slope, bool has_term, class T>
struct GradientPacks {
  static constexpr bool has_y = slope == Slope::relu_of_y;
  static constexpr int unroll = has_y || slope == Slope::silu_of_x ? 2 : 3;
  Pack<T, width> packs[2 + has_y + has_term];

  GradientPacks() = default;
  __device__ GradientPacks(std::uint32_t at, const T* dy, const T* dy_term, const T* x, const T* y)
      : packs{pack_at<width>(dy, at), pack_at<width>(x, at)} {
    if constexpr (has_y) packs[2] = pack_at<width>(y, at);
    if constexpr (has_term) packs[2 + has_y] = pack_at<width>(dy_term, at);
  }
  // dy with its second term, as add() rounds it.
  __device__ Pack<T, width> sum_of_terms() const {
    using C = ComputeType<T>;
    Pack<T, width> sum = packs[0];
    if constexpr (has_term)
#pragma unroll
      for (int i = 0; i < width; ++i)
        sum.value[i] = convert<T>(convert<C>(sum.value[i]) + convert<C>(packs[2 + has_y].value[i]));
    return sum;
  }
  __device__ const Pack<T, width>& dy() const {
    return packs[0];
  }
  __device__ const Pack<T, width>& x() const {
    return packs[1];
  }
  // Only relu_of_y reads it.
  __device__ const Pack<T, width>& y() const {
    return packs[has_y ? 2 : 1];
  }
};

// Sums of g and g · (x − mean), where g is dy after the gradient of the activation. writes: g is stored in
// dresidual. has_term: dy_term is added to dy.
template <int width, Slope slope, bool writes, bool has_term, class T, class C>
__global__ void __launch_bounds__(threads, blocks_of(slope))
    gradient_sums_kernel(Partition partition, C* __restrict__ partial, T* __restrict__ dresidual,
                         const T* __restrict__ dy, const T* __restrict__ dy_term, const T* __restrict__ x,
                         const T* __restrict__ y, TypedValues<C> channel_values) {
  using Values = Pack<T, width>;
  sum_part<width>(partition, partial, [&](int channel, const PackWalk& walk, C(&sums)[2][width]) {
    const ThreadChannels<width, C> own(channel_values, channel);
    using Loaded = GradientPacks<width, slope, has_term, T>;
    const auto load = [&](std::uint32_t at) { return Loaded(at, dy, dy_term, x, y); };
    walk.template for_each<Loaded::unroll>(load, [&](std::uint32_t at, const Loaded& loaded) {
      Values gradient = loaded.sum_of_terms();
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const C value = convert<C>(loaded.x().value[i]);
        const C g = own.template activation_gradient<slope>(convert<C>(gradient.value[i]), value,
                                                            loaded.y().value[i], i);
        if constexpr (writes) gradient.value[i] = convert<T>(g);
        sums[0][i] += g;
        sums[1][i] += g * (value - own.center[i]);
      }
      if constexpr (writes) pack_at<width>(dresidual, at) = gradient;
    });
  });
}

template <class C>
struct TypedFactors {
  const C *b, *c;
  std::int64_t step;

  explicit TypedFactors(const Factors& factors)
      : b(reinterpret_cast<const C*>(factors.b)),
        c(reinterpret_cast<const C*>(factors.c)),
        step(factors.step) {}
};

template <int width, Slope slope, class T, class C>
__global__ void __launch_bounds__(threads, blocks_of(slope))
    input_gradient_kernel(Partition partition, T* __restrict__ dx, const T* __restrict__ dy,
                          const T* __restrict__ x, const T* __restrict__ y, TypedValues<C> channel_values,
                          TypedFactors<C> factors) {
  using Values = Pack<T, width>;
  for_packs<width>(partition, [&](int channel, const PackWalk& walk) {
    const ThreadChannels<width, C> own(channel_values, channel);
    const std::int64_t first = blockIdx.z * factors.step + channel;
    C b[width], c[width];
    load_channels(b, factors.b + first);
    load_channels(c, factors.c + first);
    using Loaded = GradientPacks<width, slope, false, T>;
    const auto load = [&](std::uint32_t at) { return Loaded(at, dy, nullptr, x, y); };
    walk.template for_each<Loaded::unroll>(load, [&](std::uint32_t at, const Loaded& loaded) {
      Values values = loaded.x();
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const C value = convert<C>(values.value[i]);
        const C g = own.template activation_gradient<slope>(convert<C>(loaded.dy().value[i]), value,
                                                            loaded.y().value[i], i);
        values.value[i] = convert<T>(own.scale[i] * g + b[i] * (value - own.center[i]) + c[i]);
      }
      pack_at<width>(dx, at) = values;
    });
  });
}

int width_of(const BatchNormPlan& plan) {
  int result = 1;
  on_width(plan, [&]<class T, class C, int width>() { result = width; });
  return result;
}

// Parts of the rows of a batch for `blocks` blocks at a time, each of at least `min_passes` passes.
void divide_batch(Partition& partition, std::int64_t blocks, std::int64_t min_passes) {
  const int rows_per_pass = threads / partition.lanes;
  const std::int64_t max_parts =
      std::max<std::int64_t>(1, partition.batch_rows / (rows_per_pass * min_passes));
  partition.parts = static_cast<int>(std::min(std::max<std::int64_t>(1, blocks), max_parts));
  partition.wave_rows = partition.batch_rows;
}

Partition partition_channels(const BatchNormPlan& plan) {
  constexpr int max_lanes = 32;  // more do not join more loads, but leave fewer rows to a part
  const int width = width_of(plan);
  Partition partition;
  partition.rows = plan.rows;
  partition.channels = plan.channels;
  partition.packs = static_cast<int>(plan.channels / width);
  while (partition.lanes < max_lanes && partition.lanes < partition.packs) partition.lanes *= 2;
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

int gradient_blocks(const BatchNormPlan& plan, const BatchNormBackward& args) {
  return blocks_of(slope_of(plan, args));
}

Partition partition_sums(const BatchNormPlan& plan, int resident_blocks, Device device) {
  Partition partition = partition_channels(plan);
  partition.batches = plan.batches();
  partition.batch_rows = partition.batches > 1 ? plan.batch_rows() : plan.rows;
  const std::int64_t blocks = std::int64_t{resident_blocks} * multiprocessor_count(device);
  constexpr std::int64_t min_passes = 8;  // shorter parts cost more to reduce than they save
  divide_batch(partition, blocks / lane_groups(partition) / partition.batches, min_passes);
  return partition;
}

Partition partition_values(const BatchNormPlan& plan, int resident_blocks, Device device) {
  Partition partition = partition_sums(plan, resident_blocks, device);
  const std::int64_t blocks = std::int64_t{resident_blocks} * multiprocessor_count(device);
  constexpr std::int64_t min_passes = 4;
  divide_batch(partition, blocks / lane_groups(partition) / partition.batches, min_passes);
  if (partition.batches > 1) return partition;
  // Several waves, of at least wave_passes passes, even out multiprocessors that run ahead.
  constexpr std::int64_t wave_passes = 16, max_waves = 4;
  const std::int64_t pass_rows = std::int64_t{partition.parts} * (threads / partition.lanes);
  const std::int64_t waves = std::clamp<std::int64_t>(plan.rows / (pass_rows * wave_passes), 1, max_waves);
  partition.waves = static_cast<int>(waves);
  partition.parts *= partition.waves;
  partition.wave_rows = (plan.rows + waves - 1) / waves;
  return partition;
}

Partition partition_shards(const BatchNormPlan& plan, const BatchNormShards& shards, int resident_blocks,
                           Device device) {
  Partition partition = partition_channels(plan);
  partition.by_shard = true;
  partition.shards = shards;
  partition.batches = shards.own.count();
  partition.batch_rows = (shards.rows + shards.shards - 1) / shards.shards * shards.row_values;
  const std::int64_t blocks = std::int64_t{resident_blocks} * multiprocessor_count(device);
  constexpr std::int64_t min_passes = 8;
  divide_batch(partition, blocks / lane_groups(partition), min_passes);
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
          reinterpret_cast<const T*>(args.dy), reinterpret_cast<const T*>(args.dy_term),
          values_or_gradient<T>(args), reinterpret_cast<const T*>(args.y), TypedValues<C>(channel_values));
    };
    if (args.dy_term) return launch(gradient_sums_kernel<width, Slope::relu_of_y, true, true, T, C>);
    on_slope(slope_of(plan, args), [&]<Slope how>() {
      if (args.dresidual)
        launch(gradient_sums_kernel<width, how, true, false, T, C>);
      else
        launch(gradient_sums_kernel<width, how, false, false, T, C>);
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
