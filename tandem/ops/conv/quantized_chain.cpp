#include "tandem/ops/conv/quantized_chain.h"

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/conv/block_conv.h"
#include "tandem/ops/conv/quantized_conv_kernel.h"
#include "tandem/ops/conv/quantized_images.h"

namespace tandem::detail {
namespace {

// What the numbers of a value stand for.
Quantization values_of(std::span<const QuantizedStep> steps, std::size_t value) {
  return value == 0 ? steps.front().conv->input : steps[value - 1].conv->result;
}

Tensor one_by_one(std::span<const QuantizedStep> steps, const Tensor& x) {
  return run_steps(steps, x, [&](std::size_t i, const Tensor& input, const Tensor& residual) {
    const QuantizedStep& step = steps[i];
    QuantizedResidual added;
    if (step.residual) added = {residual, values_of(steps, *step.residual)};
    return quantized_conv2d(*step.conv, input, step.activation, added);
  });
}

using QuantizedStages = ChainStages<QuantizedConv2d>;

QuantizedStages stages_of(std::span<const QuantizedStep> steps, const Shape& images) {
  return QuantizedStages(steps, images, 1, quantized_plan);
}

// See ChainStages::append_to().
void append_stages(QuantizedStages& stages, std::span<const QuantizedStep> steps,
                   std::vector<ChainStage>& chain, std::byte* images, std::optional<std::size_t> before,
                   std::byte* result) {
  stages.append_to(
      chain, images, before, result,
      [&](const QuantizedStep& step, const QuantizedStages::Operands& operands) {
        return quantized_block_conv(
            {.plan = operands.plan,
             .conv = *step.conv,
             .x = operands.x,
             .y = operands.y,
             .residual = operands.residual,
             .residual_values = step.residual ? values_of(steps, *step.residual) : Quantization{},
             .activation = step.activation});
      });
}

}  // namespace

Tensor quantized_conv_chain(std::span<const QuantizedStep> steps, const Tensor& x) {
  if (steps.empty()) return x;
  if (x.device().is_cuda() || x.numel() == 0) return one_by_one(steps, x);
  check_quantized_images("quantized_conv2d", x);
  const Tensor images = x.detach().contiguous();
  QuantizedStages stages = stages_of(steps, x.shape());
  Tensor result = Tensor::empty(stages.result(), DType::u8);
  if (result.numel() == 0) return result;
  std::vector<ChainStage> chain;
  append_stages(stages, steps, chain, images.bytes(), std::nullopt, result.bytes());
  block_conv_chain(chain);
  return result;
}

Tensor quantized_features(const QuantizedStem& stem, std::span<const QuantizedStep> steps, const Tensor& x) {
  const QuantizedConv2d& conv = *stem.conv;
  const Quantization last_values = steps.empty() ? conv.result : steps.back().conv->result;
  if (x.device().is_cuda() || x.numel() == 0 || steps.empty()) {
    const Tensor pooled = quantized_stem(conv, x, stem.pool_kernel, stem.pool_window);
    return quantized_image_mean(quantized_conv_chain(steps, pooled), last_values);
  }
  check_floating_images("quantized_stem", x);
  const Tensor given = x.detach().contiguous();
  const FloatingImages images = floating_images(given);
  const std::int64_t count = x.size(0), channels = conv.weight_shape[3];
  const Conv2dPlan plan = quantized_plan(conv, {count, x.size(1), x.size(2), channels});
  const PoolPlan pool =
      quantized_pool_plan(count, plan.out, plan.filters, stem.pool_kernel, stem.pool_window);
  QuantizedStages stages = stages_of(steps, {count, pool.out.y, pool.out.x, plan.filters});
  const Shape last_shape = stages.result();
  Tensor means = Tensor::empty({count, last_shape[3]}, DType::f32);
  if (last_shape.numel() == 0) return means;

  const Buffer stored = make_scratch<std::uint8_t>(images.pixels * channels),
               convolved = make_scratch<std::uint8_t>(sizes_of(plan).y),
               pooled = make_scratch<std::uint8_t>(count * pool.out.y * pool.out.x * plan.filters),
               last = make_scratch<std::uint8_t>(last_shape.numel());
  const PoolPlan mean{
      .images = count, .channels = last_shape[3], .in = {last_shape[1], last_shape[2]}, .dtype = DType::u8};
  const auto quantize = [&](IndexRange lines, std::byte*) {
    quantize_pixels(images, conv.input, channels, as<std::uint8_t>(stored),
                    {lines.begin * plan.in.x, lines.end * plan.in.x});
  };
  const auto pool_lines = [&](IndexRange lines, std::byte* scratch) {
    max_pool_lines(pool, as<std::uint8_t>(pooled), as<std::uint8_t>(convolved), lines,
                   reinterpret_cast<std::uint8_t*>(scratch));
  };
  const auto average = [&](IndexRange parts, std::byte*) {
    mean_parts(mean, means.data<float>(), as<std::uint8_t>(last), last_values, parts);
  };
  const QuantizedTask convolution{.plan = plan,
                                  .conv = conv,
                                  .x = stored.data(),
                                  .y = convolved.data(),
                                  .activation = FusedActivation::relu};
  std::vector<ChainStage> chain{
      {.work = ImageLines{count, plan.in.y, 0, quantize}},
      {.work = quantized_block_conv(convolution), .input = 0},
      {.work = ImageLines{count, pool.out.y, pool.in.x * pool.channels, pool_lines}, .input = 1}};
  append_stages(stages, steps, chain, pooled.data(), 2, last.data());
  chain.push_back({.work = ImageLines{count, ceil_div(mean.channels, mean_channels), 0, average},
                   .input = chain.size() - 1});
  block_conv_chain(chain);
  return means;
}

}  // namespace tandem::detail
