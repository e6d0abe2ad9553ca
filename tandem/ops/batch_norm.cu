// Batch normalisation on CUDA: memory-bound, so every pass moves 16 bytes a thread and reads what it must
// once. Forward in training: sums of each channel by parts of the rows, one small kernel that joins the parts
// into mean, deviation and running statistics, one pass that applies them. Backward likewise. Parts are
// joined in a fixed order: the same bits on every run.
#include "tandem/ops/batch_norm.h"

#include <algorithm>

#include "tandem/device/buffer.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem {
namespace {

constexpr int threads = 256;

// The channels a thread handles together; channels that are no multiple of that go one by one.
template <class T>
constexpr int widest = static_cast<int>(16 / sizeof(T));

// How a pass over (rows, channels) is cut: blockDim = threads = lanes × rows at a time, where `lanes` packs
// of channels lie side by side; blockIdx.x counts parts of a batch's rows, blockIdx.y groups of lanes,
// blockIdx.z batches.
struct Cut {
  std::int64_t rows = 0, channels = 0, batch_rows = 0, batches = 1;
  int packs = 0, lanes = 1, parts = 1;
  std::int64_t rows_in_part = 0;
};

Cut cut_rows(const BatchNormPlan& plan, int width, Device device) {
  Cut cut;
  cut.rows = plan.rows;
  cut.channels = plan.channels;
  cut.batches = plan.batches();
  cut.batch_rows = cut.batches > 1 ? plan.batch_rows() : plan.rows;
  cut.packs = static_cast<int>((plan.channels + width - 1) / width);
  while (cut.lanes < threads && cut.lanes < cut.packs) cut.lanes *= 2;
  const int at_once = threads / cut.lanes;
  const int groups = (cut.packs + cut.lanes - 1) / cut.lanes;
  const std::int64_t wanted =
      std::max<std::int64_t>(1, std::int64_t{8} * multiprocessor_count(device) / groups / cut.batches);
  constexpr std::int64_t least_passes = 8;  // a part too short costs more to join than it saves
  const std::int64_t most = std::max<std::int64_t>(1, cut.batch_rows / (at_once * least_passes));
  cut.parts = static_cast<int>(std::min(wanted, most));
  cut.rows_in_part = (cut.batch_rows + cut.parts - 1) / cut.parts;
  return cut;
}

dim3 grid_of(const Cut& cut) {
  return dim3(static_cast<unsigned>(cut.parts),
              static_cast<unsigned>((cut.packs + cut.lanes - 1) / cut.lanes),
              static_cast<unsigned>(cut.batches));
}

// The rows of this block.
struct Rows {
  std::int64_t begin, end;

  __device__ explicit Rows(const Cut& cut) {
    const std::int64_t batch = blockIdx.z * cut.batch_rows;
    begin = batch + blockIdx.x * cut.rows_in_part;
    end = min(min(begin + cut.rows_in_part, batch + cut.batch_rows), cut.rows);
  }
};

// Two sums for each channel over the rows of a part: add(row, first channel, sums).
template <int width, class C, class F>
__device__ void sum_part(const Cut& cut, C* __restrict__ partial, F&& add) {
  const int lane = static_cast<int>(blockIdx.y) * cut.lanes + static_cast<int>(threadIdx.x) % cut.lanes;
  const int at_once = threads / cut.lanes, mine = static_cast<int>(threadIdx.x) / cut.lanes;
  C sums[2][width] = {};
  if (lane < cut.packs) {
    const Rows rows(cut);
#pragma unroll 4
    for (std::int64_t row = rows.begin + mine; row < rows.end; row += at_once)
      add(row * cut.channels + std::int64_t{lane} * width, lane * width, sums);
  }
  __shared__ C shared[2][width][threads];
#pragma unroll
  for (int s = 0; s < 2; ++s)
#pragma unroll
    for (int i = 0; i < width; ++i) shared[s][i][threadIdx.x] = sums[s][i];
  for (int half = at_once / 2; half > 0; half /= 2) {
    __syncthreads();
    if (mine < half)
#pragma unroll
      for (int s = 0; s < 2; ++s)
#pragma unroll
        for (int i = 0; i < width; ++i)
          shared[s][i][threadIdx.x] += shared[s][i][threadIdx.x + half * cut.lanes];
  }
  if (mine == 0 && lane < cut.packs)
#pragma unroll
    for (int s = 0; s < 2; ++s)
#pragma unroll
      for (int i = 0; i < width; ++i)
        partial[((std::int64_t{blockIdx.z} * 2 + s) * cut.channels + lane * width + i) * gridDim.x +
                blockIdx.x] = shared[s][i][threadIdx.x];
}

// A warp joins the parts of one channel. Lane 0 gets the sums.
template <class C>
__device__ void join_parts(const C* partial, int parts, std::int64_t channels, std::int64_t channel,
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

// Sums of x − x₀ and (x − x₀)², with x₀ the channel's first value: near enough to the mean that nothing
// cancels.
template <int width, class T, class C>
__global__ void __launch_bounds__(threads)
    sum_values(Cut cut, C* __restrict__ partial, const T* __restrict__ x) {
  using Values = Pack<T, width>;
  sum_part<width>(cut, partial, [&](std::int64_t at, int channel, C(&sums)[2][width]) {
    const Values values = *reinterpret_cast<const Values*>(x + at);
    const Values first =
        *reinterpret_cast<const Values*>(x + blockIdx.z * cut.batch_rows * cut.channels + channel);
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
    join_values(const C* partial, int parts, BatchNormPlan plan, const T* x, C* running_mean,
                C* running_variance, C* mean, C* inverse_deviation, std::int64_t* batches) {
  if (batches && blockIdx.x == 0 && threadIdx.x == 0) *batches += plan.batches();
  const std::int64_t channel = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / 32;
  if (channel >= plan.channels) return;
  const double momentum = plan.options.momentum;
  for (std::int64_t batch = 0; batch < plan.batches(); ++batch) {
    double sum, squares;
    join_parts(partial + batch * 2 * plan.channels * parts, parts, plan.channels, channel, sum, squares);
    if (threadIdx.x % 32 != 0) continue;
    const std::int64_t first = batch * plan.batch_rows(), at = batch * plan.channels + channel;
    const auto count = static_cast<double>(min(plan.batch_rows(), plan.rows - first));
    const double offset = sum / count, centre = convert<C>(x[first * plan.channels + channel]) + offset;
    const double variance = fmax(squares / count - offset * offset, 0.0);
    mean[at] = static_cast<C>(centre);
    inverse_deviation[at] = static_cast<C>(1 / sqrt(variance + plan.options.epsilon));
    running_mean[channel] = static_cast<C>((1 - momentum) * running_mean[channel] + momentum * centre);
    running_variance[channel] = static_cast<C>((1 - momentum) * running_variance[channel] +
                                               momentum * (variance * count / (count - 1)));
  }
}

template <class C>
__global__ void __launch_bounds__(threads)
    take_running(BatchNormPlan plan, const C* running_mean, const C* running_variance, C* mean,
                 C* inverse_deviation) {
  const std::int64_t channel = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (channel >= plan.channels) return;
  mean[channel] = running_mean[channel];
  inverse_deviation[channel] =
      static_cast<C>(1 / sqrt(static_cast<double>(running_variance[channel]) + plan.options.epsilon));
}

// The rows of a part and the channels of a thread, which stay the same: what belongs to them is loaded once.
// f(offset of the pack) for each.
template <int width, class F>
__device__ void for_packs(const Cut& cut, F&& f) {
  const int lane = static_cast<int>(blockIdx.y) * cut.lanes + static_cast<int>(threadIdx.x) % cut.lanes;
  const int at_once = threads / cut.lanes, mine = static_cast<int>(threadIdx.x) / cut.lanes;
  if (lane >= cut.packs) return;
  const Rows own(cut);
  f(lane * width, [&](auto&& each) {
#pragma unroll 4
    for (std::int64_t row = own.begin + mine; row < own.end; row += at_once)
      each(row * cut.channels + std::int64_t{lane} * width);
  });
}

template <int width, bool has_residual, bool relu, class T, class C>
__global__ void __launch_bounds__(threads)
    apply(Cut cut, T* __restrict__ y, const T* __restrict__ x, const T* __restrict__ residual,
          const C* __restrict__ weight, const C* __restrict__ bias, const C* __restrict__ mean,
          const C* __restrict__ inverse_deviation) {
  using Values = Pack<T, width>;
  for_packs<width>(cut, [&](int channel, auto&& rows) {
    C centre[width], scale[width], shift[width];
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const std::int64_t at = blockIdx.z * cut.channels + channel + i;
      centre[i] = mean[at];
      scale[i] = weight[channel + i] * inverse_deviation[at];
      shift[i] = bias[channel + i];
    }
    rows([&](std::int64_t at) {
      Values values = *reinterpret_cast<const Values*>(x + at);
      [[maybe_unused]] Values others = values;
      if constexpr (has_residual) others = *reinterpret_cast<const Values*>(residual + at);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        C value = (convert<C>(values.value[i]) - centre[i]) * scale[i] + shift[i];
        if constexpr (has_residual) value += convert<C>(others.value[i]);
        if constexpr (relu) value = value < 0 ? C{0} : value;
        values.value[i] = convert<T>(value);
      }
      *reinterpret_cast<Values*>(y + at) = values;
    });
  });
}

// How the ReLU's share of a gradient is known: not needed, from its result, or from x, where y follows from
// it.
enum class Mask { none, from_y, from_x };

// What a channel's results are made of, in memory and in the registers of a thread.
template <class C>
struct ChannelLine {
  const C *mean, *inverse_deviation, *weight, *bias;
};

template <int width, class C>
struct OwnLine {
  C centre[width], scale[width], shift[width];

  __device__ OwnLine(const ChannelLine<C>& line, int channel) {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      centre[i] = line.mean[channel + i];
      scale[i] = line.weight[channel + i] * line.inverse_deviation[channel + i];
      shift[i] = line.bias[channel + i];
    }
  }
  // The share of g that goes through the ReLU.
  template <Mask mask, class T>
  __device__ C through_relu(C g, C x, T y, int i) const {
    if constexpr (mask == Mask::from_y) return convert<C>(y) > 0 ? g : C{0};
    if constexpr (mask == Mask::from_x) return (x - centre[i]) * scale[i] + shift[i] > 0 ? g : C{0};
    return g;
  }
};

// Sums of g and g · (x − mean), where g is the gradient after the ReLU; g is written where it is wanted.
template <int width, Mask mask, bool writes, class T, class C>
__global__ void __launch_bounds__(threads)
    sum_gradients(Cut cut, C* __restrict__ partial, T* __restrict__ dresidual, const T* __restrict__ dy,
                  const T* __restrict__ x, const T* __restrict__ y, ChannelLine<C> line) {
  using Values = Pack<T, width>;
  const int lane = static_cast<int>(blockIdx.y) * cut.lanes + static_cast<int>(threadIdx.x) % cut.lanes;
  const OwnLine<width, C> own(line, lane < cut.packs ? lane * width : 0);
  sum_part<width>(cut, partial, [&](std::int64_t at, int, C(&sums)[2][width]) {
    Values gradient = *reinterpret_cast<const Values*>(dy + at);
    const Values values = *reinterpret_cast<const Values*>(x + at);
    [[maybe_unused]] Values results = values;
    if constexpr (mask == Mask::from_y) results = *reinterpret_cast<const Values*>(y + at);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const C value = convert<C>(values.value[i]);
      const C g = own.template through_relu<mask>(convert<C>(gradient.value[i]), value, results.value[i], i);
      if constexpr (writes) gradient.value[i] = convert<T>(g);
      sums[0][i] += g;
      sums[1][i] += g * (value - own.centre[i]);
    }
    if constexpr (writes) *reinterpret_cast<Values*>(dresidual + at) = gradient;
  });
}

// The factors of dx = a · g + b · (x − mean) + c, and the gradients of weight and bias.
template <class C>
struct Factors {
  C *a, *b, *c;
};

template <class C>
__global__ void __launch_bounds__(threads)
    join_gradients(const C* partial, int parts, BatchNormPlan plan, const C* weight,
                   const C* inverse_deviation, C* dweight, C* dbias, Factors<C> factors) {
  const std::int64_t channel = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / 32;
  if (channel >= plan.channels) return;
  double sum, product;
  join_parts(partial, parts, plan.channels, channel, sum, product);
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

template <int width, Mask mask, class T, class C>
__global__ void __launch_bounds__(threads)
    apply_gradient(Cut cut, T* __restrict__ dx, const T* __restrict__ dy, const T* __restrict__ x,
                   const T* __restrict__ y, ChannelLine<C> line, Factors<C> factors) {
  using Values = Pack<T, width>;
  for_packs<width>(cut, [&](int channel, auto&& rows) {
    const OwnLine<width, C> own(line, channel);
    C a[width], b[width], c[width];
#pragma unroll
    for (int i = 0; i < width; ++i)
      a[i] = factors.a[channel + i], b[i] = factors.b[channel + i], c[i] = factors.c[channel + i];
    rows([&](std::int64_t at) {
      const Values gradient = *reinterpret_cast<const Values*>(dy + at);
      Values values = *reinterpret_cast<const Values*>(x + at);
      [[maybe_unused]] Values results = values;
      if constexpr (mask == Mask::from_y) results = *reinterpret_cast<const Values*>(y + at);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const C value = convert<C>(values.value[i]);
        const C g =
            own.template through_relu<mask>(convert<C>(gradient.value[i]), value, results.value[i], i);
        values.value[i] = convert<T>(a[i] * g + b[i] * (value - own.centre[i]) + c[i]);
      }
      *reinterpret_cast<Values*>(dx + at) = values;
    });
  });
}

unsigned warps_for(std::int64_t channels) {
  return static_cast<unsigned>((channels * 32 + threads - 1) / threads);
}

// f.operator()<T, C, width>() with the widest packs that fit the channels and the alignment.
template <class F>
void on_width(const BatchNormPlan& plan, F&& f) {
  on_dtype(FloatTypes{}, plan.dtype, "batch_norm", [&]<class T>() {
    using C = ComputeType<T>;
    if (plan.channels % widest<T> == 0)
      f.template operator()<T, C, widest<T>>();
    else
      f.template operator()<T, C, 1>();
  });
}

template <class F>
void on_mask(Mask mask, F&& f) {
  switch (mask) {
    case Mask::none:
      return f.template operator()<Mask::none>();
    case Mask::from_y:
      return f.template operator()<Mask::from_y>();
    case Mask::from_x:
      return f.template operator()<Mask::from_x>();
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
void batch_norm_kernel<Backend::cuda>(const BatchNormPlan& plan, const BatchNormForward& of,
                                      StreamView stream) {
  const cudaStream_t on = cuda_stream(stream);
  on_width(plan, [&]<class T, class C, int width>() {
    const auto* x = reinterpret_cast<const T*>(of.x);
    auto* const mean = reinterpret_cast<C*>(of.mean);
    auto* const inverse = reinterpret_cast<C*>(of.inverse_deviation);
    auto* const running_mean = reinterpret_cast<C*>(of.running_mean);
    auto* const running_variance = reinterpret_cast<C*>(of.running_variance);
    const Cut cut = cut_rows(plan, width, stream.device);
    if (plan.options.training) {
      const Buffer partial(static_cast<std::size_t>(cut.batches * 2 * cut.parts * plan.channels) * sizeof(C),
                           stream);
      auto* const sums = reinterpret_cast<C*>(partial.data());
      sum_values<width, T, C><<<grid_of(cut), threads, 0, on>>>(cut, sums, x);
      check_launch("batch_norm sums");
      join_values<T, C><<<warps_for(plan.channels), threads, 0, on>>>(
          sums, cut.parts, plan, x, running_mean, running_variance, mean, inverse, of.batches);
      check_launch("batch_norm statistics");
    } else {
      take_running<C><<<blocks_for(plan.channels, threads), threads, 0, on>>>(
          plan, running_mean, running_variance, mean, inverse);
      check_launch("batch_norm statistics");
    }
    on_flags(of.residual != nullptr, plan.options.relu, [&]<bool has_residual, bool relu>() {
      apply<width, has_residual, relu, T, C><<<grid_of(cut), threads, 0, on>>>(
          cut, reinterpret_cast<T*>(of.y), x, reinterpret_cast<const T*>(of.residual),
          reinterpret_cast<const C*>(of.weight), reinterpret_cast<const C*>(of.bias), mean, inverse);
    });
    check_launch("batch_norm");
  });
}

template <>
void batch_norm_gradient_kernel<Backend::cuda>(const BatchNormPlan& plan, const BatchNormBackward& of,
                                               StreamView stream) {
  const cudaStream_t on = cuda_stream(stream);
  on_width(plan, [&]<class T, class C, int width>() {
    const auto* dy = reinterpret_cast<const T*>(of.dy);
    const auto* x = of.x ? reinterpret_cast<const T*>(of.x) : dy;  // not needed then, but read
    const auto* y = reinterpret_cast<const T*>(of.y);
    auto* const dresidual = reinterpret_cast<T*>(of.dresidual);
    const Cut cut = cut_rows(plan, width, stream.device);
    const Buffer memory(static_cast<std::size_t>((2 * cut.parts + 4) * plan.channels) * sizeof(C), stream);
    auto* const sums = reinterpret_cast<C*>(memory.data());
    C* const after = sums + 2 * cut.parts * plan.channels;
    const Factors<C> factors{after, after + plan.channels, after + 2 * plan.channels};
    C* const zeros = after + 3 * plan.channels;  // for what nothing needs
    if (!of.weight || !of.mean || !of.inverse_deviation)
      cuda_check(cudaMemsetAsync(zeros, 0, static_cast<std::size_t>(plan.channels) * sizeof(C), on),
                 "cudaMemsetAsync");
    const auto known = [&](const std::byte* values) -> const C* {
      return values ? reinterpret_cast<const C*>(values) : zeros;
    };
    const ChannelLine<C> line{known(of.mean), known(of.inverse_deviation), known(of.weight), known(of.bias)};
    const Mask mask = !plan.options.relu ? Mask::none : of.bias ? Mask::from_x : Mask::from_y;
    on_mask(mask, [&]<Mask how>() {
      if (dresidual)
        sum_gradients<width, how, true, T, C>
            <<<grid_of(cut), threads, 0, on>>>(cut, sums, dresidual, dy, x, y, line);
      else
        sum_gradients<width, how, false, T, C>
            <<<grid_of(cut), threads, 0, on>>>(cut, sums, nullptr, dy, x, y, line);
    });
    check_launch("batch_norm gradient sums");
    join_gradients<C><<<warps_for(plan.channels), threads, 0, on>>>(
        sums, cut.parts, plan, line.weight, line.inverse_deviation, reinterpret_cast<C*>(of.dweight),
        reinterpret_cast<C*>(of.dbias), factors);
    check_launch("batch_norm gradient factors");
    if (!of.dx) return;
    // What was written for the residual has gone through the ReLU already.
    on_mask(dresidual ? Mask::none : mask, [&]<Mask how>() {
      apply_gradient<width, how, T, C><<<grid_of(cut), threads, 0, on>>>(
          cut, reinterpret_cast<T*>(of.dx), dresidual ? dresidual : dy, x, y, line, factors);
    });
    check_launch("batch_norm gradient");
  });
}

}  // namespace tandem
