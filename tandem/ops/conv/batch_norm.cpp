#include "tandem/ops/conv/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/conv/batch_norm_activation.h"
#include "tandem/ops/conv/batch_norm_cpu.h"
#include "tandem/ops/conv/batch_norm_shards.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/shard_sums.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace detail {
namespace {

// Sums are computed in blocks of rows that fit the L1 cache: in the compute type within a block, in f64 over
// blocks. The blocks depend only on the shape, so the bits do not depend on the number of threads.
struct RowBlocks {
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t block;  // rows per block
  std::int64_t count;  // of blocks

  explicit RowBlocks(const BatchNormPlan& plan)
      : rows(plan.rows),
        channels(plan.channels),
        block(std::clamp<std::int64_t>(8192 / plan.channels, 4, 256)),
        count((plan.rows + block - 1) / block) {}
  std::int64_t first(std::int64_t b) const { return b * block; }
  std::int64_t size(std::int64_t b) const { return std::min(block, rows - b * block); }
};

// Calls f(block) for every block, in parallel, compiled for the vectors of this CPU.
template <class F>
void for_each_block(const RowBlocks& blocks, const F& f) {
  const std::int64_t work = blocks.block * blocks.channels;
  parallel_for(blocks.count, std::max<std::int64_t>(8192 / work, 1),
               [&](std::int64_t begin, std::int64_t end) {
                 with_simd([&]<std::size_t>() __attribute__((always_inline)) {
                   for (std::int64_t b = begin; b < end; ++b) f(b);
                 });
               });
}

// Per channel.
struct Moments {
  double* mean;
  double* squares;  // Σ (x − mean)²
};

// Two passes over each block while it is in cache: its mean, then the squared deviations from it. Blocks are
// combined exactly: Σ (x − mean)² = Σ over blocks of (Σ (x − block mean)² + n · (block mean − mean)²).
template <class T, class C = ComputeType<T>>
void write_moments(const BatchNormPlan& plan, Moments moments, const T* x) {
  const RowBlocks blocks(plan);
  const std::int64_t channels = plan.channels;
  const Buffer means_buffer = make_scratch<C>(blocks.count * channels),
               squares_buffer = make_scratch<C>(blocks.count * channels);
  C *const means = as<C>(means_buffer), *const squares = as<C>(squares_buffer);
  for_each_block(
      blocks, [&](std::int64_t b) __attribute__((always_inline)) {
        const T* const from = x + blocks.first(b) * channels;
        C* __restrict mean = means + b * channels;
        C* __restrict square = squares + b * channels;
        const std::int64_t size = blocks.size(b);
        for (std::int64_t c = 0; c < channels; ++c) mean[c] = square[c] = C{0};
        for (std::int64_t r = 0; r < size; ++r)
          for (std::int64_t c = 0; c < channels; ++c) mean[c] += convert<C>(from[r * channels + c]);
        const C inverse_count = C{1} / static_cast<C>(size);
        for (std::int64_t c = 0; c < channels; ++c) mean[c] *= inverse_count;
        for (std::int64_t r = 0; r < size; ++r)
          for (std::int64_t c = 0; c < channels; ++c) {
            const C deviation = convert<C>(from[r * channels + c]) - mean[c];
            square[c] += deviation * deviation;
          }
      });
  double *const mean = moments.mean, *const total = moments.squares;
  std::fill_n(mean, channels, 0.0);
  std::fill_n(total, channels, 0.0);
  const double inverse_count = 1.0 / static_cast<double>(plan.rows);
  parallel_for(channels, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = 0; b < blocks.count; ++b)
      for (std::int64_t c = begin; c < end; ++c)
        mean[c] += static_cast<double>(means[b * channels + c]) * static_cast<double>(blocks.size(b));
    for (std::int64_t c = begin; c < end; ++c) mean[c] *= inverse_count;
    for (std::int64_t b = 0; b < blocks.count; ++b)
      for (std::int64_t c = begin; c < end; ++c) {
        const double difference = static_cast<double>(means[b * channels + c]) - mean[c];
        total[c] += static_cast<double>(squares[b * channels + c]) +
                    difference * difference * static_cast<double>(blocks.size(b));
      }
  });
}

// Writes what normalizes `count` values per channel and updates the running statistics. Pointers to results
// may be null.
template <class C>
void write_statistics(const BatchNormPlan& plan, std::int64_t count, Moments moments,
                      const BatchNormForward& args) {
  C* const mean = reinterpret_cast<C*>(args.mean);
  C* const inverse = reinterpret_cast<C*>(args.inverse_deviation);
  C* const running_mean = reinterpret_cast<C*>(args.running_mean);
  C* const running_variance = reinterpret_cast<C*>(args.running_variance);
  const double epsilon = plan.options.epsilon, momentum = plan.options.momentum;
  const double inverse_count = 1.0 / static_cast<double>(count);
  const double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
  if (args.batches_tracked) ++*args.batches_tracked;
  for (std::int64_t c = 0; c < plan.channels; ++c) {
    const double variance = moments.squares[c] * inverse_count;
    if (mean) {
      mean[c] = static_cast<C>(moments.mean[c]);
      inverse[c] = static_cast<C>(1 / std::sqrt(variance + epsilon));
    }
    if (!running_mean) continue;
    running_mean[c] =
        static_cast<C>((1 - momentum) * static_cast<double>(running_mean[c]) + momentum * moments.mean[c]);
    running_variance[c] = static_cast<C>((1 - momentum) * static_cast<double>(running_variance[c]) +
                                         momentum * unbiased * variance);
  }
}

template <class T, class C = ComputeType<T>>
void apply_statistics(const BatchNormPlan& plan, const BatchNormForward& args) {
  const std::int64_t channels = plan.channels;
  const T* const x = reinterpret_cast<const T*>(args.x);
  const T* const residual = reinterpret_cast<const T*>(args.residual);
  const C* const mean = reinterpret_cast<const C*>(args.mean);
  const C* const inverse = reinterpret_cast<const C*>(args.inverse_deviation);
  const Buffer scale_buffer = make_scratch<C>(channels);
  C* const scale = as<C>(scale_buffer);
  const C* const bias = reinterpret_cast<const C*>(args.bias);
  for (std::int64_t c = 0; c < channels; ++c)
    scale[c] = inverse[c] * reinterpret_cast<const C*>(args.weight)[c];
  const RowBlocks blocks(plan);
  for_each_block(
      blocks, [&](std::int64_t b) __attribute__((always_inline)) {
        for (std::int64_t r = blocks.first(b); r < blocks.first(b) + blocks.size(b); ++r) {
          const T* __restrict from = x + r * channels;
          T* __restrict to = reinterpret_cast<T*>(args.y) + r * channels;
          const auto row = [&](auto epilogue) __attribute__((always_inline)) {
            for (std::int64_t c = 0; c < channels; ++c)
              to[c] = convert<T>(epilogue((convert<C>(from[c]) - mean[c]) * scale[c] + bias[c], c));
          };
          const T* __restrict added = residual ? residual + r * channels : nullptr;
          on_fused_activation(
              plan.options.activation, [&]<FusedActivation a>() __attribute__((always_inline)) {
                if (added)
                  row([&](C value, std::int64_t c) __attribute__((always_inline)) {
                    return activate_value<Backend::cpu, a>(value + convert<C>(added[c]));
                  });
                else
                  row([&](C value, std::int64_t)
                          __attribute__((always_inline)) { return activate_value<Backend::cpu, a>(value); });
              });
        }
      });
}

template <class T, class C = ComputeType<T>>
void normalize_batch(const BatchNormPlan& plan, const BatchNormForward& args) {
  const std::int64_t channels = plan.channels;
  if (plan.options.training) {
    std::vector<double> sums(static_cast<std::size_t>(2 * channels));
    const Moments moments{sums.data(), sums.data() + channels};
    write_moments<T>(plan, moments, reinterpret_cast<const T*>(args.x));
    write_statistics<C>(plan, plan.rows, moments, args);
  } else {
    const C* const running_variance = reinterpret_cast<const C*>(args.running_variance);
    for (std::int64_t c = 0; c < channels; ++c) {
      reinterpret_cast<C*>(args.mean)[c] = reinterpret_cast<const C*>(args.running_mean)[c];
      reinterpret_cast<C*>(args.inverse_deviation)[c] =
          static_cast<C>(1 / std::sqrt(static_cast<double>(running_variance[c]) + plan.options.epsilon));
    }
  }
  apply_statistics<T>(plan, args);
}

// Σ g and Σ g · x̂ over rows, where g is dy after the gradient of the activation.
struct GradientSums {
  double* g;
  double* product;
};

template <class T, class C = ComputeType<T>>
void write_gradient_sums(const BatchNormPlan& plan, const BatchNormBackward& args, bool with_product,
                         GradientSums total) {
  const RowBlocks blocks(plan);
  const std::int64_t channels = plan.channels;
  const Buffer sums_buffer = make_scratch<C>(2 * blocks.count * channels);
  C* const sums = as<C>(sums_buffer);
  const C* const mean = reinterpret_cast<const C*>(args.mean);
  const C* const inverse = reinterpret_cast<const C*>(args.inverse_deviation);
  const Buffer scale_buffer = make_scratch<C>(channels);
  C* const scale = as<C>(scale_buffer);
  if (needs_argument(plan.options.activation)) write_scale(plan, args, scale);
  for_each_block(
      blocks, [&](std::int64_t b) __attribute__((always_inline)) {
        C* __restrict sum = sums + 2 * b * channels;
        C* __restrict block_product = sum + channels;
        for (std::int64_t c = 0; c < channels; ++c) sum[c] = block_product[c] = C{0};
        for (std::int64_t r = blocks.first(b); r < blocks.first(b) + blocks.size(b); ++r) {
          const T* __restrict x = with_product ? reinterpret_cast<const T*>(args.x) + r * channels : nullptr;
          const auto row = [&](auto gradient) __attribute__((always_inline)) {
            if (x)
              for (std::int64_t c = 0; c < channels; ++c) {
                const C value = gradient(c);
                sum[c] += value;
                block_product[c] += value * (convert<C>(x[c]) - mean[c]);
              }
            else
              for (std::int64_t c = 0; c < channels; ++c) sum[c] += gradient(c);
          };
          activation_row<T>(plan, args, scale, r).on_gradient(plan.options.activation, row);
        }
      });
  parallel_for(channels, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) total.g[c] = total.product[c] = 0;
    for (std::int64_t b = 0; b < blocks.count; ++b)
      for (std::int64_t c = begin; c < end; ++c) {
        total.g[c] += static_cast<double>(sums[2 * b * channels + c]);
        total.product[c] += static_cast<double>(sums[(2 * b + 1) * channels + c]);
      }
    for (std::int64_t c = begin; c < end && with_product; ++c)
      total.product[c] *= static_cast<double>(inverse[c]);
  });
  for (std::int64_t c = 0; c < channels; ++c) {
    if (args.dweight) reinterpret_cast<C*>(args.dweight)[c] = static_cast<C>(total.product[c]);
    if (args.dbias) reinterpret_cast<C*>(args.dbias)[c] = static_cast<C>(total.g[c]);
  }
}

// The mean and the variance depend on x.
bool through_statistics(const BatchNormPlan& plan, const BatchNormBackward& args) {
  return plan.options.training && args.dx;
}

// dx = scale · (g − mean of g − x̂ · mean of g · x̂). The last two terms are the gradients through the mean and
// the variance of `count` values; without them `sums` is not read.
template <class T, class C = ComputeType<T>>
void write_input_gradients(const BatchNormPlan& plan, const BatchNormBackward& args, std::int64_t count,
                           GradientSums sums) {
  if (!args.dx && !args.dresidual) return;
  const std::int64_t channels = plan.channels;
  const bool with_sums = through_statistics(plan, args);
  const Buffer factors = make_scratch<C>(4 * channels);
  C* const scale = as<C>(factors);
  C* const slope = scale + channels;
  C* const center = slope + channels;
  C* const offset = center + channels;
  const C* const mean = reinterpret_cast<const C*>(args.mean);
  const C* const inverse = reinterpret_cast<const C*>(args.inverse_deviation);
  if (args.dx) write_scale(plan, args, scale);
  const double inverse_count = 1.0 / static_cast<double>(count);
  for (std::int64_t c = 0; c < channels && with_sums; ++c) {
    slope[c] = static_cast<C>(static_cast<double>(inverse[c]) * sums.product[c] * inverse_count);
    center[c] = mean[c];
    offset[c] = static_cast<C>(sums.g[c] * inverse_count);
  }
  const RowBlocks blocks(plan);
  for_each_block(
      blocks, [&](std::int64_t b) __attribute__((always_inline)) {
        for (std::int64_t r = blocks.first(b); r < blocks.first(b) + blocks.size(b); ++r) {
          const std::int64_t at = r * channels;
          const T* __restrict x = with_sums ? reinterpret_cast<const T*>(args.x) + at : nullptr;
          T* __restrict dx = args.dx ? reinterpret_cast<T*>(args.dx) + at : nullptr;
          T* __restrict dresidual = args.dresidual ? reinterpret_cast<T*>(args.dresidual) + at : nullptr;
          const auto row = [&](auto gradient) __attribute__((always_inline)) {
            if (dresidual)
              for (std::int64_t c = 0; c < channels; ++c) dresidual[c] = convert<T>(gradient(c));
            if (dx && with_sums)
              for (std::int64_t c = 0; c < channels; ++c)
                dx[c] = convert<T>(scale[c] *
                                   (gradient(c) - offset[c] - (convert<C>(x[c]) - center[c]) * slope[c]));
            else if (dx)
              for (std::int64_t c = 0; c < channels; ++c) dx[c] = convert<T>(scale[c] * gradient(c));
          };
          activation_row<T>(plan, args, scale, r).on_gradient(plan.options.activation, row);
        }
      });
}

template <class T>
void batch_gradient(const BatchNormPlan& plan, const BatchNormBackward& args) {
  std::vector<double> values(static_cast<std::size_t>(2 * plan.channels));
  const GradientSums sums{values.data(), values.data() + plan.channels};
  const bool with_statistics = through_statistics(plan, args);
  if (with_statistics || args.dweight || args.dbias)
    write_gradient_sums<T>(plan, args, with_statistics || args.dweight, sums);
  write_input_gradients<T>(plan, args, plan.rows, sums);
}

}  // namespace

template <>
void batch_norm_kernel<Backend::cpu>(const BatchNormPlan& plan, const BatchNormForward& args, StreamView) {
  on_dtype(FloatTypes{}, plan.dtype, "batch_norm", [&]<class T>() {
    for (std::int64_t batch = 0; batch < plan.batches(); ++batch) {
      const std::int64_t first = batch * plan.batch_rows();
      const auto offset = static_cast<std::ptrdiff_t>(first * plan.channels) * std::ptrdiff_t{sizeof(T)};
      BatchNormPlan batch_plan = plan;
      if (plan.options.training) batch_plan.rows = std::min(plan.batch_rows(), plan.rows - first);
      BatchNormForward batch_args = args;  // each batch updates the running statistics of the one before
      batch_args.y += offset;
      batch_args.x += offset;
      if (batch_args.residual) batch_args.residual += offset;
      normalize_batch<T>(batch_plan, batch_args);
    }
  });
}

template <>
void batch_norm_gradient_kernel<Backend::cpu>(const BatchNormPlan& plan, const BatchNormBackward& args,
                                              StreamView) {
  on_dtype(FloatTypes{}, plan.dtype, "batch_norm", [&]<class T>() { batch_gradient<T>(plan, args); });
}

namespace batch_norm_cpu {

void write_moments(const BatchNormPlan& plan, double* moments, const std::byte* x) {
  on_dtype(FloatTypes{}, plan.dtype, "batch_norm", [&]<class T>() {
    detail::write_moments<T>(plan, {moments, moments + plan.channels}, reinterpret_cast<const T*>(x));
  });
}

void join_moments(const BatchNormPlan& plan, const BatchNormShards& shards, const double* moments,
                  const BatchNormForward& args) {
  const std::int64_t channels = plan.channels;
  std::vector<double> joined(static_cast<std::size_t>(2 * channels));
  double *const mean = joined.data(), *const squares = mean + channels;
  for (std::int64_t shard = 0; shard < shards.shards; ++shard)
    for (std::int64_t c = 0; c < channels; ++c)
      mean[c] += moments[2 * shard * channels + c] * static_cast<double>(shards.values(shard));
  for (std::int64_t c = 0; c < channels; ++c) mean[c] /= static_cast<double>(shards.values());
  for (std::int64_t shard = 0; shard < shards.shards; ++shard)
    for (std::int64_t c = 0; c < channels; ++c) {
      const double difference = moments[2 * shard * channels + c] - mean[c];
      squares[c] += moments[(2 * shard + 1) * channels + c] +
                    difference * difference * static_cast<double>(shards.values(shard));
    }
  on_dtype(FloatTypes{}, plan.dtype, "batch_norm", [&]<class T>() {
    write_statistics<ComputeType<T>>(plan, shards.values(), {mean, squares}, args);
  });
}

void apply_moments(const BatchNormPlan& plan, const BatchNormForward& args) {
  on_dtype(FloatTypes{}, plan.dtype, "batch_norm", [&]<class T>() { apply_statistics<T>(plan, args); });
}

void write_sums(const BatchNormPlan& plan, double* sums, const BatchNormBackward& args) {
  on_dtype(FloatTypes{}, plan.dtype, "batch_norm", [&]<class T>() {
    write_gradient_sums<T>(plan, args, true, {sums, sums + plan.channels});
  });
}

void write_input_gradient(const BatchNormPlan& plan, const BatchNormShards& shards, const double* sums,
                          const BatchNormBackward& args) {
  std::vector<double> total(static_cast<std::size_t>(2 * plan.channels));
  for (std::int64_t shard = 0; shard < shards.shards; ++shard)
    for (std::int64_t i = 0; i < 2 * plan.channels; ++i)
      total[static_cast<std::size_t>(i)] += sums[shard * 2 * plan.channels + i];
  on_dtype(FloatTypes{}, plan.dtype, "batch_norm", [&]<class T>() {
    write_input_gradients<T>(plan, args, shards.values(), {total.data(), total.data() + plan.channels});
  });
}

}  // namespace batch_norm_cpu

namespace {

void check_parameter(const char* name, const Tensor& parameter, const Tensor& x) {
  common_device("batch_norm", {&x, &parameter});
  const DType dtype = x.dtype() == DType::bf16 ? DType::f32 : x.dtype();
  check(parameter.dtype() == dtype && parameter.rank() == 1 && parameter.size(0) == x.size(-1),
        "[batch_norm] expected {} ({}) of {}, got {} of {}", name, x.size(-1), name_of(dtype),
        parameter.shape().to_string(), name_of(parameter.dtype()));
}

void check_arguments(const Tensor& x, const Tensor& weight, const Tensor& bias,
                     const BatchNormStatistics& statistics, const Tensor& residual) {
  common_device("batch_norm", {&x});
  check(is_floating(x.dtype()), "[batch_norm] expected a floating dtype, got {}", name_of(x.dtype()));
  check(x.rank() >= 2 && x.size(-1) > 0, "[batch_norm] expected x (…, channels) of at least two axes, got {}",
        x.shape().to_string());
  check_parameter("weight", weight, x);
  check_parameter("bias", bias, x);
  const auto& [running_mean, running_variance, batches_tracked] = statistics;
  check_parameter("running mean", running_mean, x);
  check_parameter("running variance", running_variance, x);
  check(running_mean.is_contiguous() && running_variance.is_contiguous(),
        "[batch_norm] expected contiguous running statistics, got strides {} and {}",
        running_mean.strides().to_string(), running_variance.strides().to_string());
  if (batches_tracked.defined()) {
    common_device("batch_norm", {&x, &batches_tracked});
    check(batches_tracked.dtype() == DType::i64 && batches_tracked.numel() == 1,
          "[batch_norm] expected batches_tracked of one element in i64, got {} {}",
          name_of(batches_tracked.dtype()), batches_tracked.shape().to_string());
  }
  // CUDA kernels count packs of 16 bytes, or elements, in 32 bits.
  const auto pack = static_cast<std::int64_t>(16 / size_of(x.dtype()));
  const std::int64_t packs = x.size(-1) % pack == 0 ? x.numel() / pack : x.numel();
  check(!x.device().is_cuda() || packs <= std::numeric_limits<std::uint32_t>::max(),
        "[batch_norm] expected x of fewer elements, got shape {}", x.shape().to_string());
  if (!residual.defined()) return;
  common_device("batch_norm", {&x, &residual});
  common_dtype("batch_norm", {&x, &residual});
  check(residual.shape() == x.shape(), "[batch_norm] expected a residual of shape {}, got {}",
        x.shape().to_string(), residual.shape().to_string());
}

// What the gradient needs. Handles are empty where no requested gradient needs them.
struct SavedForBackward {
  BatchNormPlan plan;
  std::optional<ShardedBatchNorm> sharded;
  Tensor x;
  Tensor y;
  Tensor weight;
  Tensor mean;
  Tensor inverse_deviation;
  Tensor bias;
  bool x_grad;
  bool weight_grad;
  bool bias_grad;
  bool residual_grad;
};

// `term`, where it is defined, is added to g.
Gradients gradients_of(const SavedForBackward& saved, const Tensor& g, const Tensor& term = {}) {
  if (saved.sharded) check_scope(saved.sharded->part, "batch_norm");
  const Tensor dy = g.contiguous();
  const Tensor dy_term = term.defined() ? term.contiguous() : Tensor();
  const Device device = g.device();
  const DType parameter_dtype = saved.plan.dtype == DType::bf16 ? DType::f32 : saved.plan.dtype;
  const auto empty_if = [&](bool wanted, const Shape& shape, DType dtype) {
    return wanted ? Tensor::empty(shape, dtype, device) : Tensor();
  };
  const Tensor dx = empty_if(saved.x_grad, dy.shape(), dy.dtype());
  const Tensor dresidual = empty_if(
      saved.residual_grad && saved.plan.options.activation == FusedActivation::relu, dy.shape(), dy.dtype());
  Shape sums{saved.plan.channels};
  if (saved.sharded) sums = stacked(saved.sharded->part->own.count(), sums);
  const Tensor dweight = empty_if(saved.weight_grad, sums, parameter_dtype);
  const Tensor dbias = empty_if(saved.bias_grad, sums, parameter_dtype);
  const BatchNormBackward args{.dx = dx.bytes(),
                               .dresidual = dresidual.bytes(),
                               .dweight = dweight.bytes(),
                               .dbias = dbias.bytes(),
                               .dy = dy.bytes(),
                               .dy_term = dy_term.bytes(),
                               .x = saved.x.bytes(),
                               .y = saved.y.bytes(),
                               .weight = saved.weight.bytes(),
                               .mean = saved.mean.bytes(),
                               .inverse_deviation = saved.inverse_deviation.bytes(),
                               .bias = saved.bias.bytes()};
  if (saved.sharded) {
    for (const Tensor* gradient : {&dweight, &dbias})
      if (gradient->defined()) clear_for_empty_shards(*saved.sharded, *gradient);
    gradients_of_shards(*saved.sharded, saved.plan, args, saved.x_grad, current_stream(device));
  } else if (args.dx || args.dresidual || args.dweight || args.dbias)
    on_backend(device, "batch_norm",
               [&]<Backend B>() { batch_norm_gradient_kernel<B>(saved.plan, args, current_stream(device)); });
  return {dx, dweight, dbias, saved.residual_grad && !dresidual.defined() ? dy : dresidual};
}

}  // namespace
}  // namespace detail

Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  BatchNormStatistics& running_statistics, const BatchNormOptions& options,
                  const Tensor& residual) {
  using namespace detail;
  check_arguments(x, weight, bias, running_statistics, residual);
  check(!residual.defined() || !needs_argument(options.activation),
        "[batch_norm] expected no activation or ReLU with a residual, got SiLU or hardswish");
  const Device device = x.device();
  const BatchNormPlan plan{
      .rows = x.numel() / x.size(-1), .channels = x.size(-1), .dtype = x.dtype(), .options = options};
  const ShardPart* const part = shard_part();
  std::optional<ShardedBatchNorm> sharded;
  if (part)
    sharded = sharded_batch_norm(*part, x, options);
  else
    check(!options.training || (plan.rows > 1 && (plan.rows - 1) % plan.batch_rows() > 0),
          "[batch_norm] expected more than one value per channel in training, got x {}",
          x.shape().to_string());
  const Tensor dense = x.detach().contiguous();
  const Tensor scale = weight.detach().contiguous();
  const Tensor shift = bias.detach().contiguous();
  const Tensor added = residual.defined() ? residual.detach().contiguous() : Tensor();
  const std::int64_t batches = sharded ? sharded->shards.statistics() : plan.batches();
  const Tensor mean = Tensor::empty({batches, plan.channels}, scale.dtype(), device);
  const Tensor inverse_deviation = Tensor::empty(mean.shape(), scale.dtype(), device);
  Tensor y = Tensor::empty(x.shape(), x.dtype(), device);
  if (plan.rows == 0 && !sharded) return y;
  const Tensor& batches_tracked = running_statistics.batches_tracked;
  const BatchNormForward args{
      .y = y.bytes(),
      .x = dense.bytes(),
      .residual = added.bytes(),
      .weight = scale.bytes(),
      .bias = shift.bytes(),
      .running_mean = running_statistics.mean.bytes(),
      .running_variance = running_statistics.variance.bytes(),
      .mean = mean.bytes(),
      .inverse_deviation = inverse_deviation.bytes(),
      .batches_tracked = batches_tracked.defined() ? batches_tracked.data<std::int64_t>() : nullptr};
  if (sharded && options.training)
    normalize_shards(*sharded, plan, args, current_stream(device));
  else if (plan.rows > 0)
    on_backend(device, "batch_norm",
               [&]<Backend B>() { batch_norm_kernel<B>(plan, args, current_stream(device)); });
  const bool x_grad = wants_grad(x), weight_grad = wants_grad(weight), bias_grad = wants_grad(bias);
  const bool residual_grad = residual.defined() && wants_grad(residual);
  if (!x_grad && !weight_grad && !bias_grad && !residual_grad) return y;
  check(sharded || batches == 1,
        "[batch_norm] expected one batch where gradients are required, got {} ghost batches", batches);
  const bool relu = options.activation == FusedActivation::relu;
  const bool argument = needs_argument(options.activation);
  const bool needs_x = weight_grad || (x_grad && options.training) || argument;
  const auto saved = std::make_shared<const SavedForBackward>(SavedForBackward{
      .plan = plan,
      .sharded = sharded,
      .x = needs_x ? dense : Tensor(),
      .y = relu ? y.detach() : Tensor(),
      .weight = x_grad || argument ? scale : Tensor(),
      .mean = needs_x ? mean : Tensor(),
      .inverse_deviation = x_grad || needs_x ? inverse_deviation : Tensor(),
      .bias = argument || (x_grad && needs_x && relu && !residual.defined()) ? shift : Tensor(),
      .x_grad = x_grad,
      .weight_grad = weight_grad,
      .bias_grad = bias_grad,
      .residual_grad = residual_grad});
  record(y, "batch_norm", {&x, &weight, &bias, &residual},
         [saved](const Tensor& g) { return gradients_of(*saved, g); });
  // The output of a residual block is the input of two branches, whose gradients the first pass can add.
  if (residual_grad && relu && !sharded && device.is_cuda())
    accept_terms(y, [saved](const Tensor& g, const Tensor& term) { return gradients_of(*saved, g, term); });
  trace_option("training", options.training ? 1.0 : 0.0);
  trace_option("activation", static_cast<double>(options.activation));
  trace_option("mean", running_statistics.mean);
  trace_option("variance", running_statistics.variance);
  trace_option("epsilon", options.epsilon);
  return y;
}

}  // namespace tandem
