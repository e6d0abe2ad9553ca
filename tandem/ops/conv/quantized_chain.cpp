#include "tandem/ops/conv/quantized_chain.h"

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/conv/block_conv.h"
#include "tandem/ops/conv/quantized_conv_kernel.h"

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

}  // namespace

Tensor quantized_conv_chain(std::span<const QuantizedStep> steps, const Tensor& x) {
  if (steps.empty()) return x;
  if (x.device().is_cuda() || x.numel() == 0) return one_by_one(steps, x);
  check_quantized_images("quantized_conv2d", x);
  const Tensor images = x.detach().contiguous();
  std::vector<Shape> shapes{x.shape()};
  std::vector<Conv2dPlan> plans;
  std::int64_t slot_bytes = 0;
  for (const QuantizedStep& step : steps) {
    expect(step.input < shapes.size());
    const Conv2dPlan& plan = plans.emplace_back(quantized_plan(*step.conv, shapes[step.input]));
    shapes.push_back({plan.images, plan.out.y, plan.out.x, plan.filters});
    expect(!step.residual || shapes.at(*step.residual) == shapes.back());
    slot_bytes = std::max(slot_bytes, shapes.back().numel());
  }
  const Slots slots = assign_slots(steps);
  const Buffer memory = make_scratch<std::byte>(static_cast<std::int64_t>(slots.count) * slot_bytes);
  Tensor result = Tensor::empty(shapes.back(), DType::u8);
  std::vector<std::byte*> values{images.bytes()};
  for (const std::size_t slot : slots.of_step)
    values.push_back(memory.data() + static_cast<std::int64_t>(slot) * slot_bytes);
  values.back() = result.bytes();
  if (result.numel() == 0) return result;
  const auto step_of = [](std::size_t value) { return value == 0 ? std::nullopt : std::optional(value - 1); };
  std::vector<ChainedConv> chain;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const QuantizedStep& step = steps[i];
    QuantizedTask task{.plan = plans[i],
                       .conv = *step.conv,
                       .x = values[step.input],
                       .y = values[i + 1],
                       .activation = step.activation};
    ChainedConv& next = chain.emplace_back();
    next.input = step_of(step.input);
    if (step.residual) {
      task.residual = values[*step.residual];
      task.residual_values = values_of(steps, *step.residual);
      next.residual = step_of(*step.residual);
    }
    next.conv = quantized_block_conv(task);
  }
  block_conv_chain(chain);
  return result;
}

}  // namespace tandem::detail
