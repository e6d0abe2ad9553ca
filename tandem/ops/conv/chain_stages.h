// The convolutions of a network as stages of a chain (block_conv.h): which values they read, and where their
// results are in memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/ops/bf16_scratch.h"
#include "tandem/ops/conv/block_conv.h"

namespace tandem::detail {

// Values are numbered: 0 are the images, i > 0 is the result of step i − 1 of a chain. Of a step: the value
// that it convolves and, if there is one, that which it adds; both are of steps before it.
template <class Conv>
struct ConvStep {
  const Conv* conv;
  FusedActivation activation;
  std::size_t input;
  std::optional<std::size_t> residual;
};

// The convolution of a network's images, with ReLU, and the max pooling after it: value 0.
template <class Conv>
struct ConvStem {
  const Conv* conv;
  YX pool_kernel;
  Window pool_window;
};

// For every value the step after which it is not needed any more; steps.size() for the last one.
template <class Step>
std::vector<std::size_t> last_uses(std::span<const Step> steps) {
  std::vector<std::size_t> last(steps.size() + 1, steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    last[steps[i].input] = i;
    if (steps[i].residual) last[*steps[i].residual] = i;
  }
  return last;
}

// The last value, where compute(i, input, residual) is the result of step i: its residual is an empty handle
// if it has none. Memory is freed after its last use.
template <class Step, class F>
Tensor run_steps(std::span<const Step> steps, const Tensor& first, const F& compute) {
  const std::vector<std::size_t> last = last_uses(steps);
  std::vector<Tensor> values(steps.size() + 1);
  values[0] = first;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    values[i + 1] = compute(i, values[step.input], step.residual ? values[*step.residual] : Tensor());
    for (std::size_t v = 0; v <= i; ++v)
      if (last[v] == i) values[v] = Tensor();
  }
  return values.back();
}

// Results but for the last one are in memory of its own, which those share whose last use was two or more
// stages before.
template <class Conv>
class ChainStages {
 public:
  using Steps = std::span<const ConvStep<Conv>>;

  // plan_of(conv, shape of its images); `images` is the shape of value 0, whose elements have this size, as
  // all others.
  template <class PlanOf>
  ChainStages(Steps steps, const Shape& images, std::int64_t element_bytes, const PlanOf& plan_of)
      : steps_(steps) {
    std::vector<Shape> shapes{images};
    for (const ConvStep<Conv>& step : steps) {
      expect(step.input < shapes.size());
      const Conv2dPlan& plan = plans_.emplace_back(plan_of(*step.conv, shapes[step.input]));
      shapes.push_back({plan.images, plan.out.y, plan.out.x, plan.filters});
      expect(!step.residual || shapes.at(*step.residual) == shapes.back());
      slot_bytes_ = std::max(slot_bytes_, shapes.back().numel() * element_bytes);
    }
    result_ = shapes.back();
  }

  // The shape of the last value.
  const Shape& result() const { return result_; }

  // What a step reads and writes.
  struct Operands {
    const Conv2dPlan& plan;
    const std::byte* x;
    std::byte* y;
    const std::byte* residual;  // or null
  };
  // conv_of(step, operands) is its BlockConv. Value 0 is at `images`, where stage `before` of the chain
  // writes it, if one does; the last one will be at `result`. The stages are valid as long as this object is.
  template <class ConvOf>
  void append_to(std::vector<ChainStage>& chain, std::byte* images, std::optional<std::size_t> before,
                 std::byte* result, const ConvOf& conv_of) {
    std::vector<std::byte*> values = place_values(images);
    values.back() = steps_.empty() ? images : result;
    const std::size_t first = chain.size();
    const auto stage_of = [&](std::size_t value) {
      return value == 0 ? before : std::optional(first + value - 1);
    };
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const ConvStep<Conv>& step = steps_[i];
      const Operands operands{.plan = plans_[i],
                              .x = values[step.input],
                              .y = values[i + 1],
                              .residual = step.residual ? values[*step.residual] : nullptr};
      chain.push_back({.work = conv_of(step, operands),
                       .input = stage_of(step.input),
                       .residual = step.residual ? stage_of(*step.residual) : std::nullopt});
    }
  }

 private:
  std::vector<std::byte*> place_values(std::byte* images) {
    const std::vector<std::size_t> last = last_uses(steps_);
    std::vector<std::size_t> slots, last_use;  // of every step, and of the value in every slot
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const auto free = std::ranges::find_if(last_use, [&](std::size_t use) { return use + 2 <= i; });
      slots.push_back(static_cast<std::size_t>(free - last_use.begin()));
      if (free == last_use.end()) last_use.push_back(0);
      last_use[slots.back()] = last[i + 1];
    }
    memory_ = make_scratch<std::byte>(std::ssize(last_use) * slot_bytes_);
    std::vector<std::byte*> values{images};
    for (const std::size_t slot : slots)
      values.push_back(memory_.data() + static_cast<std::int64_t>(slot) * slot_bytes_);
    return values;
  }

  Steps steps_;
  std::vector<Conv2dPlan> plans_;
  std::int64_t slot_bytes_ = 0;
  Shape result_;
  Buffer memory_;
};

}  // namespace tandem::detail
