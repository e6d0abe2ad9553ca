#include "tandem/ops/batch_norm.h"

#include <cmath>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/ops/elementwise.h"
#include "tandem/ops/wide_copy.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

// Statistics are taken in blocks of rows that stay in the first cache: sums in the compute type within a
// block, in f64 over blocks. The blocks depend on the shape alone, so the bits do not depend on the threads.
struct RowBlocks {
  std::int64_t rows, channels, block, count;

  explicit RowBlocks(const BatchNormPlan& plan)
      : rows(plan.rows),
        channels(plan.channels),
        block(std::clamp<std::int64_t>(8192 / plan.channels, 4, 256)),
        count((plan.rows + block - 1) / block) {}
  std::int64_t first(std::int64_t b) const { return b * block; }
  std::int64_t size(std::int64_t b) const { return std::min(block, rows - b * block); }
};

// f(block) for every block, split over the team, compiled for this CPU's vectors.
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

struct Moments {
  std::vector<double> mean, variance;  // the biased one
};

// Two passes over each block while it is in cache: its mean, and the squares of what is left. Blocks are put
// together exactly as if there were one: Σ (x − mean)² = Σ over blocks of their own and n (their mean −
// mean)².
template <class T, class C = ComputeType<T>>
Moments moments_of(const BatchNormPlan& plan, const T* x) {
  const RowBlocks blocks(plan);
  const std::int64_t channels = plan.channels;
  const Buffer means_buffer = scratch_of<C>(blocks.count * channels),
               squares_buffer = scratch_of<C>(blocks.count * channels);
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
        const C share = C{1} / static_cast<C>(size);
        for (std::int64_t c = 0; c < channels; ++c) mean[c] *= share;
        for (std::int64_t r = 0; r < size; ++r)
          for (std::int64_t c = 0; c < channels; ++c) {
            const C left = convert<C>(from[r * channels + c]) - mean[c];
            square[c] += left * left;
          }
      });
  Moments moments{std::vector<double>(static_cast<std::size_t>(channels)),
                  std::vector<double>(static_cast<std::size_t>(channels))};
  double *const mean = moments.mean.data(), *const variance = moments.variance.data();
  const double share = 1.0 / static_cast<double>(plan.rows);
  parallel_for(channels, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = 0; b < blocks.count; ++b)
      for (std::int64_t c = begin; c < end; ++c)
        mean[c] += static_cast<double>(means[b * channels + c]) * static_cast<double>(blocks.size(b));
    for (std::int64_t c = begin; c < end; ++c) mean[c] *= share;
    for (std::int64_t b = 0; b < blocks.count; ++b)
      for (std::int64_t c = begin; c < end; ++c) {
        const double off = static_cast<double>(means[b * channels + c]) - mean[c];
        variance[c] +=
            static_cast<double>(squares[b * channels + c]) + off * off * static_cast<double>(blocks.size(b));
      }
    for (std::int64_t c = begin; c < end; ++c) variance[c] *= share;
  });
  return moments;
}

template <class T, class C = ComputeType<T>>
void normalise(const BatchNormPlan& plan, const BatchNormForward& of) {
  const std::int64_t channels = plan.channels;
  const T *const x = reinterpret_cast<const T*>(of.x), *const residual =
                                                           reinterpret_cast<const T*>(of.residual);
  C *const mean = reinterpret_cast<C*>(of.mean), *const inverse = reinterpret_cast<C*>(of.inverse_deviation);
  C *const running_mean = reinterpret_cast<C*>(of.running_mean), *const running_variance =
                                                                     reinterpret_cast<C*>(
                                                                         of.running_variance);
  const double epsilon = plan.options.epsilon, momentum = plan.options.momentum;
  if (plan.options.training) {
    if (of.batches) ++*of.batches;
    const Moments moments = moments_of<T>(plan, x);
    const double unbiased = static_cast<double>(plan.rows) / static_cast<double>(plan.rows - 1);
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto i = static_cast<std::size_t>(c);
      mean[c] = static_cast<C>(moments.mean[i]);
      inverse[c] = static_cast<C>(1 / std::sqrt(moments.variance[i] + epsilon));
      running_mean[c] =
          static_cast<C>((1 - momentum) * static_cast<double>(running_mean[c]) + momentum * moments.mean[i]);
      running_variance[c] = static_cast<C>((1 - momentum) * static_cast<double>(running_variance[c]) +
                                           momentum * unbiased * moments.variance[i]);
    }
  } else {
    for (std::int64_t c = 0; c < channels; ++c) {
      mean[c] = running_mean[c];
      inverse[c] = static_cast<C>(1 / std::sqrt(static_cast<double>(running_variance[c]) + epsilon));
    }
  }
  const Buffer scale_buffer = scratch_of<C>(channels);
  C* const scale = as<C>(scale_buffer);
  const C* const bias = reinterpret_cast<const C*>(of.bias);
  for (std::int64_t c = 0; c < channels; ++c)
    scale[c] = inverse[c] * reinterpret_cast<const C*>(of.weight)[c];
  const RowBlocks blocks(plan);
  for_each_block(
      blocks, [&](std::int64_t b) __attribute__((always_inline)) {
        for (std::int64_t r = blocks.first(b); r < blocks.first(b) + blocks.size(b); ++r) {
          const T* __restrict from = x + r * channels;
          T* __restrict to = reinterpret_cast<T*>(of.y) + r * channels;
          const auto row = [&](auto after) __attribute__((always_inline)) {
            for (std::int64_t c = 0; c < channels; ++c)
              to[c] = convert<T>(after((convert<C>(from[c]) - mean[c]) * scale[c] + bias[c], c));
          };
          const auto rectified = [](C value) __attribute__((always_inline)) {
            return value < 0 ? C{0} : value;
          };
          const T* __restrict added = residual ? residual + r * channels : nullptr;
          if (residual && plan.options.relu)
            row([&](C value, std::int64_t c)
                    __attribute__((always_inline)) { return rectified(value + convert<C>(added[c])); });
          else if (residual)
            row([&](C value, std::int64_t c)
                    __attribute__((always_inline)) { return value + convert<C>(added[c]); });
          else if (plan.options.relu)
            row([&](C value, std::int64_t) __attribute__((always_inline)) { return rectified(value); });
          else
            row([&](C value, std::int64_t) __attribute__((always_inline)) { return value; });
        }
      });
}

// Σ g and Σ g · x̂ over the rows, g being dy where the ReLU let something through.
template <class T, class C = ComputeType<T>>
struct GradientSums {
  std::vector<double> of_g, of_product;

  GradientSums(const BatchNormPlan& plan, const BatchNormBackward& of, bool with_product)
      : of_g(static_cast<std::size_t>(plan.channels)), of_product(static_cast<std::size_t>(plan.channels)) {
    const RowBlocks blocks(plan);
    const std::int64_t channels = plan.channels;
    const Buffer sums_buffer = scratch_of<C>(2 * blocks.count * channels);
    C* const sums = as<C>(sums_buffer);
    const C *const mean = reinterpret_cast<const C*>(of.mean), *const inverse = reinterpret_cast<const C*>(
                                                                   of.inverse_deviation);
    for_each_block(
        blocks, [&](std::int64_t b) __attribute__((always_inline)) {
          C* __restrict sum = sums + 2 * b * channels;
          C* __restrict product = sum + channels;
          for (std::int64_t c = 0; c < channels; ++c) sum[c] = product[c] = C{0};
          for (std::int64_t r = blocks.first(b); r < blocks.first(b) + blocks.size(b); ++r) {
            const T* __restrict dy = reinterpret_cast<const T*>(of.dy) + r * channels;
            const T* __restrict x = with_product ? reinterpret_cast<const T*>(of.x) + r * channels : nullptr;
            const T* __restrict y =
                plan.options.relu ? reinterpret_cast<const T*>(of.y) + r * channels : nullptr;
            const auto row = [&](auto gradient) __attribute__((always_inline)) {
              if (x)
                for (std::int64_t c = 0; c < channels; ++c) {
                  const C g = gradient(c);
                  sum[c] += g;
                  product[c] += g * (convert<C>(x[c]) - mean[c]);
                }
              else
                for (std::int64_t c = 0; c < channels; ++c) sum[c] += gradient(c);
            };
            if (y)
              row([&](std::int64_t c) __attribute__((always_inline)) {
                return convert<C>(y[c]) <= 0 ? C{0} : convert<C>(dy[c]);
              });
            else
              row([&](std::int64_t c) __attribute__((always_inline)) { return convert<C>(dy[c]); });
          }
        });
    parallel_for(channels, 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = 0; b < blocks.count; ++b)
        for (std::int64_t c = begin; c < end; ++c) {
          of_g[static_cast<std::size_t>(c)] += static_cast<double>(sums[2 * b * channels + c]);
          of_product[static_cast<std::size_t>(c)] += static_cast<double>(sums[(2 * b + 1) * channels + c]);
        }
      for (std::int64_t c = begin; c < end && with_product; ++c)
        of_product[static_cast<std::size_t>(c)] *= static_cast<double>(inverse[c]);
    });
  }
};

// dx = scale · (g − mean of g − x̂ · mean of g · x̂): what the mean and the variance owe to x goes off.
template <class T, class C = ComputeType<T>>
void differentiate(const BatchNormPlan& plan, const BatchNormBackward& of) {
  const std::int64_t channels = plan.channels;
  const bool moved = plan.options.training && of.dx;  // x moves the mean and the variance too
  const Buffer factors = scratch_of<C>(4 * channels);
  C *const scale = as<C>(factors), *const slope = scale + channels, *const centre = slope + channels,
           *const offset = centre + channels;
  const C *const weight = reinterpret_cast<const C*>(of.weight),
                 *const mean = reinterpret_cast<const C*>(of.mean),
                 *const inverse = reinterpret_cast<const C*>(of.inverse_deviation);
  if (of.dx)
    for (std::int64_t c = 0; c < channels; ++c) scale[c] = weight[c] * inverse[c];
  if (moved || of.dweight || of.dbias) {
    const GradientSums<T> sums(plan, of, moved || of.dweight);
    for (std::int64_t c = 0; c < channels; ++c) {
      const double of_g = sums.of_g[static_cast<std::size_t>(c)];
      const double of_product = sums.of_product[static_cast<std::size_t>(c)];
      if (of.dweight) reinterpret_cast<C*>(of.dweight)[c] = static_cast<C>(of_product);
      if (of.dbias) reinterpret_cast<C*>(of.dbias)[c] = static_cast<C>(of_g);
      if (!moved) continue;
      const double share = 1.0 / static_cast<double>(plan.rows);
      slope[c] = static_cast<C>(static_cast<double>(inverse[c]) * of_product * share);
      centre[c] = mean[c];
      offset[c] = static_cast<C>(of_g * share);
    }
  }
  if (!of.dx && !of.dresidual) return;
  const RowBlocks blocks(plan);
  for_each_block(
      blocks, [&](std::int64_t b) __attribute__((always_inline)) {
        for (std::int64_t r = blocks.first(b); r < blocks.first(b) + blocks.size(b); ++r) {
          const std::int64_t at = r * channels;
          const T* __restrict dy = reinterpret_cast<const T*>(of.dy) + at;
          const T* __restrict x = moved ? reinterpret_cast<const T*>(of.x) + at : nullptr;
          const T* __restrict y = plan.options.relu ? reinterpret_cast<const T*>(of.y) + at : nullptr;
          T* __restrict dx = of.dx ? reinterpret_cast<T*>(of.dx) + at : nullptr;
          T* __restrict dresidual = of.dresidual ? reinterpret_cast<T*>(of.dresidual) + at : nullptr;
          const auto row = [&](auto gradient) __attribute__((always_inline)) {
            if (dresidual)
              for (std::int64_t c = 0; c < channels; ++c) dresidual[c] = convert<T>(gradient(c));
            if (dx && moved)
              for (std::int64_t c = 0; c < channels; ++c)
                dx[c] = convert<T>(scale[c] *
                                   (gradient(c) - offset[c] - (convert<C>(x[c]) - centre[c]) * slope[c]));
            else if (dx)
              for (std::int64_t c = 0; c < channels; ++c) dx[c] = convert<T>(scale[c] * gradient(c));
          };
          if (y)
            row([&](std::int64_t c) __attribute__((always_inline)) {
              return convert<C>(y[c]) <= 0 ? C{0} : convert<C>(dy[c]);
            });
          else
            row([&](std::int64_t c) __attribute__((always_inline)) { return convert<C>(dy[c]); });
        }
      });
}

}  // namespace

template <>
void batch_norm_kernel<Backend::cpu>(const BatchNormPlan& plan, const BatchNormForward& of, StreamView) {
  on_dtype(FloatTypes{}, plan.dtype, "batch_norm", [&]<class T>() {
    for (std::int64_t batch = 0; batch < plan.batches(); ++batch) {
      const std::int64_t first = batch * plan.batch_rows();
      const auto offset = static_cast<std::ptrdiff_t>(first * plan.channels) * std::ptrdiff_t{sizeof(T)};
      BatchNormPlan own_plan = plan;
      if (plan.options.training) own_plan.rows = std::min(plan.batch_rows(), plan.rows - first);
      BatchNormForward own = of;  // one batch's statistics after the other's
      own.y += offset;
      own.x += offset;
      if (own.residual) own.residual += offset;
      normalise<T>(own_plan, own);
    }
  });
}

template <>
void batch_norm_gradient_kernel<Backend::cpu>(const BatchNormPlan& plan, const BatchNormBackward& of,
                                              StreamView) {
  on_dtype(FloatTypes{}, plan.dtype, "batch_norm", [&]<class T>() { differentiate<T>(plan, of); });
}

namespace {

void check_parameter(const char* name, const Tensor& parameter, const Tensor& x) {
  common_device("batch_norm", {&x, &parameter});
  const DType dtype = x.dtype() == DType::bf16 ? DType::f32 : x.dtype();
  check(parameter.dtype() == dtype && parameter.rank() == 1 && parameter.size(0) == x.size(-1),
        "[batch_norm] expected {} ({}) of {}, got {} of {}", name, x.size(-1), name_of(dtype),
        parameter.shape().to_string(), name_of(parameter.dtype()));
}

void check_arguments(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                     const Tensor& running_variance, const Tensor& residual) {
  common_device("batch_norm", {&x});
  check(is_floating(x.dtype()), "[batch_norm] expected a floating dtype, got {}", name_of(x.dtype()));
  check(x.rank() >= 2 && x.size(-1) > 0, "[batch_norm] expected x (…, channels) of at least two axes, got {}",
        x.shape().to_string());
  check_parameter("weight", weight, x);
  check_parameter("bias", bias, x);
  check_parameter("running_mean", running_mean, x);
  check_parameter("running_variance", running_variance, x);
  check(running_mean.is_contiguous() && running_variance.is_contiguous(),
        "[batch_norm] expected running statistics without gaps, got strides {} and {}",
        running_mean.strides().to_string(), running_variance.strides().to_string());
  if (!residual.defined()) return;
  common_device("batch_norm", {&x, &residual});
  common_dtype("batch_norm", {&x, &residual});
  check(residual.shape() == x.shape(), "[batch_norm] expected a residual of shape {}, got {}",
        x.shape().to_string(), residual.shape().to_string());
}

// What the gradient needs; handles are empty where no gradient needs them.
struct Kept {
  BatchNormPlan plan;
  Tensor x, y, weight, mean, inverse_deviation, bias;
  bool of_x, of_weight, of_bias, of_residual;
};

Gradients gradients_of(const Kept& kept, const Tensor& g) {
  const Tensor dy = g.contiguous();
  const Device device = g.device();
  const DType parameters = kept.plan.dtype == DType::bf16 ? DType::f32 : kept.plan.dtype;
  const auto like = [&](bool wanted, const Shape& shape, DType dtype) {
    return wanted ? Tensor::empty(shape, dtype, device) : Tensor();
  };
  const Tensor dx = like(kept.of_x, dy.shape(), dy.dtype()),
               dresidual = like(kept.of_residual && kept.plan.options.relu, dy.shape(), dy.dtype()),
               dweight = like(kept.of_weight, {kept.plan.channels}, parameters),
               dbias = like(kept.of_bias, {kept.plan.channels}, parameters);
  const BatchNormBackward of{.dx = dx.bytes(),
                             .dresidual = dresidual.bytes(),
                             .dweight = dweight.bytes(),
                             .dbias = dbias.bytes(),
                             .dy = dy.bytes(),
                             .x = kept.x.bytes(),
                             .y = kept.y.bytes(),
                             .weight = kept.weight.bytes(),
                             .mean = kept.mean.bytes(),
                             .inverse_deviation = kept.inverse_deviation.bytes(),
                             .bias = kept.bias.bytes()};
  if (of.dx || of.dresidual || of.dweight || of.dbias)
    on_backend(device, "batch_norm",
               [&]<Backend B>() { batch_norm_gradient_kernel<B>(kept.plan, of, current_stream(device)); });
  return {dx, dweight, dbias, kept.of_residual && !kept.plan.options.relu ? dy : dresidual};
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_variance, const BatchNormOptions& options, const Tensor& residual,
                  const Tensor& batches) {
  check_arguments(x, weight, bias, running_mean, running_variance, residual);
  if (batches.defined()) {
    common_device("batch_norm", {&x, &batches});
    check(batches.dtype() == DType::i64 && batches.numel() == 1,
          "[batch_norm] expected a count of batches in i64, got {} {}", name_of(batches.dtype()),
          batches.shape().to_string());
  }
  const Device device = x.device();
  const BatchNormPlan plan{
      .rows = x.numel() / x.size(-1), .channels = x.size(-1), .dtype = x.dtype(), .options = options};
  check(!options.training || (plan.rows > 1 && (plan.rows - 1) % plan.batch_rows() > 0),
        "[batch_norm] expected more than one value a channel in training, got x {}", x.shape().to_string());
  const Tensor dense = x.detach().contiguous(), scale = weight.detach().contiguous(),
               shift = bias.detach().contiguous(),
               added = residual.defined() ? residual.detach().contiguous() : Tensor();
  const Tensor mean = Tensor::empty({plan.batches(), plan.channels}, scale.dtype(), device);
  const Tensor inverse_deviation = Tensor::empty(mean.shape(), scale.dtype(), device);
  Tensor y = Tensor::empty(x.shape(), x.dtype(), device);
  if (plan.rows == 0) return y;
  const BatchNormForward of{.y = y.bytes(),
                            .x = dense.bytes(),
                            .residual = added.bytes(),
                            .weight = scale.bytes(),
                            .bias = shift.bytes(),
                            .running_mean = running_mean.bytes(),
                            .running_variance = running_variance.bytes(),
                            .mean = mean.bytes(),
                            .inverse_deviation = inverse_deviation.bytes(),
                            .batches = batches.defined() ? batches.data<std::int64_t>() : nullptr};
  on_backend(device, "batch_norm",
             [&]<Backend B>() { batch_norm_kernel<B>(plan, of, current_stream(device)); });
  const bool of_x = wants_grad(x), of_weight = wants_grad(weight), of_bias = wants_grad(bias);
  const bool of_residual = residual.defined() && wants_grad(residual);
  if (!of_x && !of_weight && !of_bias && !of_residual) return y;
  check(plan.batches() == 1, "[batch_norm] {} batches side by side have no gradients", plan.batches());
  const bool needs_x = of_weight || (of_x && options.training);
  Kept kept{.plan = plan,
            .x = needs_x ? dense : Tensor(),
            .y = options.relu ? y.detach() : Tensor(),
            .weight = of_x ? scale : Tensor(),
            .mean = needs_x ? mean : Tensor(),
            .inverse_deviation = of_x || of_weight ? inverse_deviation : Tensor(),
            .bias = of_x && needs_x && options.relu && !residual.defined() ? shift : Tensor(),
            .of_x = of_x,
            .of_weight = of_weight,
            .of_bias = of_bias,
            .of_residual = of_residual};
  record(y, "batch_norm", {&x, &weight, &bias, &residual},
         [kept = std::move(kept)](const Tensor& g) { return gradients_of(kept, g); });
  return y;
}

}  // namespace tandem
