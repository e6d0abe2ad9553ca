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
  const std::vector<std::size_t> last = last_uses(steps);
  std::vector<Tensor> values(steps.size() + 1);
  values[0] = x;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const QuantizedStep& step = steps[i];
    QuantizedResidual residual;
    if (step.residual) residual = {values[*step.residual], values_of(steps, *step.residual)};
    values[i + 1] = quantized_conv2d(*step.conv, values[step.input], step.activation, residual);
    for (std::size_t v = 0; v <= i; ++v)
      if (last[v] == i) values[v] = Tensor();
  }
  return values.back();
}

// For every step the slot of its result: one whose value was last used two or more steps before.
struct Slots {
  std::vector<std::size_t> of_step;
  std::size_t count = 0;
};
Slots assign_slots(std::span<const QuantizedStep> steps) {
  const std::vector<std::size_t> last = last_uses(steps);
  Slots slots;
  std::vector<std::size_t> last_use;  // of the value in every slot
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto free = std::ranges::find_if(last_use, [&](std::size_t use) { return use + 2 <= i; });
    const auto slot = static_cast<std::size_t>(free - last_use.begin());
    if (free == last_use.end()) last_use.push_back(0);
    last_use[slot] = last[i + 1];
    slots.of_step.push_back(slot);
  }
  slots.count = last_use.size();
  return slots;
}

// The convolutions of steps, as stages of a chain. Results but for the last one are in memory of its own.
class StepStages {
 public:
  StepStages(std::span<const QuantizedStep> steps, const Shape& images) : steps_(steps) {
    std::vector<Shape> shapes{images};
    for (const QuantizedStep& step : steps) {
      expect(step.input < shapes.size());
      const Conv2dPlan& plan = plans_.emplace_back(quantized_plan(*step.conv, shapes[step.input]));
      shapes.push_back({plan.images, plan.out.y, plan.out.x, plan.filters});
      expect(!step.residual || shapes.at(*step.residual) == shapes.back());
      slot_bytes_ = std::max(slot_bytes_, shapes.back().numel());
    }
    result_ = shapes.back();
  }

  const Shape& result() const { return result_; }

  // Value 0 is at `images`, where stage `before` of the chain writes it, if one does.
  void append_to(std::vector<ChainStage>& chain, std::byte* images, std::optional<std::size_t> before,
                 std::byte* result) {
    const Slots slots = assign_slots(steps_);
    memory_ = make_scratch<std::byte>(static_cast<std::int64_t>(slots.count) * slot_bytes_);
    std::vector<std::byte*> values{images};
    for (const std::size_t slot : slots.of_step)
      values.push_back(memory_.data() + static_cast<std::int64_t>(slot) * slot_bytes_);
    values.back() = steps_.empty() ? images : result;
    const std::size_t first = chain.size();
    const auto stage_of = [&](std::size_t value) {
      return value == 0 ? before : std::optional(first + value - 1);
    };
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const QuantizedStep& step = steps_[i];
      QuantizedTask task{.plan = plans_[i],
                         .conv = *step.conv,
                         .x = values[step.input],
                         .y = values[i + 1],
                         .activation = step.activation};
      std::optional<std::size_t> residual;
      if (step.residual) {
        task.residual = values[*step.residual];
        task.residual_values = values_of(steps_, *step.residual);
        residual = stage_of(*step.residual);
      }
      chain.push_back({quantized_block_conv(task), stage_of(step.input), residual});
    }
  }

 private:
  std::span<const QuantizedStep> steps_;
  std::vector<Conv2dPlan> plans_;
  std::int64_t slot_bytes_ = 0;
  Shape result_;
  Buffer memory_;
};

}  // namespace

Tensor quantized_conv_chain(std::span<const QuantizedStep> steps, const Tensor& x) {
  if (steps.empty()) return x;
  if (x.device().is_cuda() || x.numel() == 0) return one_by_one(steps, x);
  check_quantized_images("quantized_conv2d", x);
  const Tensor images = x.detach().contiguous();
  StepStages stages(steps, x.shape());
  Tensor result = Tensor::empty(stages.result(), DType::u8);
  if (result.numel() == 0) return result;
  std::vector<ChainStage> chain;
  stages.append_to(chain, images.bytes(), std::nullopt, result.bytes());
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
  StepStages stages(steps, {count, pool.out.y, pool.out.x, plan.filters});
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
  stages.append_to(chain, pooled.data(), 2, last.data());
  chain.push_back({.work = ImageLines{count, ceil_div(mean.channels, mean_channels), 0, average},
                   .input = chain.size() - 1});
  block_conv_chain(chain);
  return means;
}

}  // namespace tandem::detail
