// A user's own optimizer: what the base class promises to a class that overrides update().
#include <gtest/gtest.h>

#include "tandem/device/buffer.h"
#include "tandem/nn/linear.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/fill.h"
#include "tandem/optim/optimizer_registry.h"
#include "tandem/tensor/copy.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

// w ← w − rate · (sum of all gradients so far) / step
class MeanGradient : public Optimizer {
 public:
  explicit MeanGradient(NamedTensors parameters, double rate = 0.5) : Optimizer(std::move(parameters), rate) {
    for (const auto& [name, parameter] : this->parameters())
      add_state(name + ".sum", zeros(parameter.shape(), parameter.dtype(), parameter.device()));
  }

  void update(std::size_t index, const Tensor& parameter, const Tensor& gradient) override {
    updated.push_back(index);
    const Tensor& sum = state_tensor(index);
    copy_into(sum, add(sum, gradient));
    const double scale = learning_rate() / static_cast<double>(step_count());
    copy_into(parameter.detach(), subtract(parameter, multiply(sum, scale)));
  }
  using Optimizer::add_state;
  using Optimizer::state_tensor;

  std::vector<std::size_t> updated;
};

NamedTensors two_parameters() {
  return {{"a", full({2}, 10, DType::f64).set_requires_grad()},
          {"b", full({3}, 20, DType::f64).set_requires_grad()}};
}

std::vector<double> values(const Tensor& tensor) {
  return tensor.detach().to_vector<double>();
}

TEST(OwnOptimizer, Step_UpdatesEveryParameterThatHasAGradient) {
  const NamedTensors parameters = two_parameters();
  MeanGradient optimizer(parameters);
  parameters[1].tensor.set_grad(full({3}, 4, DType::f64));
  optimizer.step();
  EXPECT_EQ(optimizer.updated, (std::vector<std::size_t>{1}));
  EXPECT_EQ(values(parameters[1].tensor), std::vector<double>(3, 18));
  optimizer.set_learning_rate(2);
  parameters[0].tensor.set_grad(full({2}, 1, DType::f64));
  parameters[1].tensor.set_grad(full({3}, 6, DType::f64));
  optimizer.step();
  EXPECT_EQ(optimizer.updated, (std::vector<std::size_t>{1, 0, 1}));
  EXPECT_EQ(values(parameters[0].tensor), std::vector<double>(2, 9));  // 10 − 2 · 1 / 2
  EXPECT_EQ(values(parameters[1].tensor), std::vector<double>(3, 8));  // 18 − 2 · 10 / 2
  EXPECT_EQ(optimizer.step_count(), 2);
  EXPECT_TRUE(parameters[0].tensor.requires_grad());
  EXPECT_EQ(optimizer.fused(), nullptr);
  optimizer.zero_grad();
  EXPECT_FALSE(parameters[0].tensor.grad().defined());
}

TEST(OwnOptimizer, SavedState_ContinuesWithTheSameBits) {
  const NamedTensors whole = two_parameters(), resumed = two_parameters();
  MeanGradient first(whole), second(resumed);
  const auto run = [](Optimizer& optimizer, double gradient) {
    for (const auto& [name, parameter] : optimizer.parameters())
      parameter.set_grad(full(parameter.shape(), gradient, DType::f64));
    optimizer.step();
  };
  run(first, 1.25);
  for (std::size_t i = 0; i < whole.size(); ++i)
    copy_into(resumed[i].tensor.detach(), whole[i].tensor.detach());
  const NamedTensors saved = first.state();
  ASSERT_EQ(saved.size(), 3u);
  EXPECT_EQ(saved[0].name + " " + saved[1].name + " " + saved[2].name, "a.sum b.sum step");
  second.load_state(saved);
  run(first, 0.3);
  run(second, 0.3);
  EXPECT_EQ(values(resumed[1].tensor), values(whole[1].tensor));
  EXPECT_EQ(second.step_count(), 2);
}

TEST(OwnOptimizer, WrongUse_IsAnError) {
  const NamedTensors parameters = two_parameters();
  MeanGradient optimizer(parameters);
  EXPECT_EQ(error_text([&] { optimizer.add_state("a.sum", ones({1})); }),
            "[optimizer] expected a new name and a tensor as state, got 'a.sum'");
  EXPECT_EQ(error_text([&] { optimizer.add_state("step", ones({1})); }),
            "[optimizer] expected a new name and a tensor as state, got 'step'");
  EXPECT_EQ(error_text([&] { optimizer.add_state("c", Tensor()); }),
            "[optimizer] expected a new name and a tensor as state, got no tensor");
  EXPECT_EQ(error_text([&] { optimizer.state_tensor(2); }),
            "[optimizer] expected the index of one of 2 states, got 2");
  parameters[0].tensor.set_grad(ones({5}, DType::f64));
  EXPECT_EQ(error_text([&] { optimizer.step(); }),
            "[optimizer] expected a gradient of shape [2] for 'a', got [5]");
  EXPECT_TRUE(optimizer.updated.empty());
  struct Nothing : Optimizer {
    using Optimizer::Optimizer;
  } nothing(two_parameters(), 0.1);
  nothing.parameters()[0].tensor.set_grad(ones({2}, DType::f64));
  EXPECT_EQ(error_text([&] { nothing.step(); }),
            "[optimizer] expected a class that overrides update() or step()");
}

TEST(OptimizerRegistry, EveryRow_MakesAnOptimizerThatSteps) {
  for (const OptimizerRow& row : optimizers().rows()) {
    SCOPED_TRACE(row.name);
    EXPECT_FALSE(row.summary.empty());
    const NamedTensors parameters = two_parameters();
    const auto optimizer = make_optimizer(row.name, parameters, {.weight_decay = 0.1}, 0.25);
    EXPECT_EQ(optimizer->learning_rate(), 0.25);
    for (const auto& [name, parameter] : parameters)
      parameter.set_grad(full(parameter.shape(), 1, DType::f64));
    optimizer->step();
    EXPECT_LT(values(parameters[0].tensor)[0], 10);
    if (row.has_momentum) {
      EXPECT_GT(make_optimizer(row.name, parameters, {.momentum = 0.9}, 0.1)->state().size(),
                make_optimizer(row.name, parameters, {}, 0.1)->state().size());
    }
  }
}

TEST(OptimizerRegistry, UnknownName_ErrorListsTheNames) {
  const std::string text = error_text([] { make_optimizer("adamax", two_parameters(), {}, 0.1); });
  EXPECT_EQ(text,
            "[optimizer] expected one of " + optimizers().list() + ", got 'adamax'; did you mean 'adam'?");
  EXPECT_EQ(text.find("[optimizer] expected one of sgd, adam, adamw"), 0u);
}

TEST(OptimizerRegistry, RegisteredOptimizer_IsFoundByName) {
  register_optimizer({.name = "mean-gradient",
                      .summary = "of this test",
                      .make = [](NamedTensors parameters, const OptimizerOptions&, double rate) {
                        return std::make_unique<MeanGradient>(std::move(parameters), rate);
                      }});
  const auto optimizer = make_optimizer("mean-gradient", two_parameters(), {}, 0.125);
  EXPECT_NE(dynamic_cast<MeanGradient*>(optimizer.get()), nullptr);
}

}  // namespace
}  // namespace tandem
