// RMSprop against the formulas of PyTorch's documentation, in f64 for one weight at a time.
#include "tandem/optim/rmsprop.h"

#include "tandem/optim/optimizer_registry.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

struct Weight {
  double w = 0, square = 0, velocity = 0;
  void step(const RMSpropOptions& options, double g) {
    g += options.weight_decay * w;
    square = options.alpha * square + (1 - options.alpha) * g * g;
    velocity = options.momentum * velocity + g / (std::sqrt(square) + options.epsilon);
    w -= options.lr * velocity;
  }
};

class RMSpropTest : public OpTest {};

TEST_P(RMSpropTest, Step_FollowsTheFormulas) {
  for (const RMSpropOptions& options :
       {RMSpropOptions{}, RMSpropOptions{.lr = 0.1, .alpha = 0.9, .momentum = 0.5},
        RMSpropOptions{.epsilon = 1e-2, .weight_decay = 0.1, .momentum = 0.9}, RMSpropOptions{.alpha = 0}}) {
    const NamedTensors parameters{{"a", random_tensor({17, 3}, dtype(), device(), 1).set_requires_grad()},
                                  {"b", random_tensor({1030}, dtype(), device(), 2).set_requires_grad()}};
    std::vector<std::vector<Weight>> expected(2);
    for (std::size_t p = 0; p < 2; ++p)
      for (const double value : values_of(parameters[p].tensor)) expected[p].push_back({.w = value});
    RMSprop optimizer(parameters, options);
    for (std::uint32_t t = 1; t <= 4; ++t) {
      for (std::size_t p = 0; p < 2; ++p) {
        const Tensor gradient = random_tensor(parameters[p].tensor.shape(), dtype(), device(),
                                              10 * t + static_cast<std::uint32_t>(p));
        parameters[p].tensor.set_grad(gradient);
        const std::vector<double> g = values_of(gradient);
        for (std::size_t i = 0; i < g.size(); ++i) expected[p][i].step(options, g[i]);
      }
      optimizer.step();
    }
    for (std::size_t p = 0; p < 2; ++p) {
      const std::vector<double> values = values_of(parameters[p].tensor);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(values[i], expected[p][i].w, 4 * tolerance() * (1 + std::abs(expected[p][i].w))) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, RMSpropTest, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

TEST(RMSprop, State_IsNamedAfterTheParameters) {
  const NamedTensors parameters{{"w", tensor_of({1, 2}, {2}, DType::f32).set_requires_grad()}};
  const auto names = [](const Optimizer& optimizer) {
    std::string all;
    for (const auto& [name, tensor] : optimizer.state()) all += name + " ";
    return all;
  };
  EXPECT_EQ(names(RMSprop(parameters)), "w.square step ");
  EXPECT_EQ(names(RMSprop(parameters, {.momentum = 0.9})), "w.square w.momentum step ");
  EXPECT_EQ(names(*make_optimizer("rmsprop", parameters, {.momentum = 0.9}, 0.1)),
            "w.square w.momentum step ");
}

TEST(RMSprop, InvalidOptions_AreErrors) {
  const NamedTensors parameters{{"w", tensor_of({1, 2}, {2}, DType::f32).set_requires_grad()}};
  EXPECT_EQ(error_text([&] { RMSprop(parameters, {.alpha = 1}); }),
            "[rmsprop] expected alpha and momentum of 0 or more and less than 1, got 1 and 0");
  EXPECT_EQ(error_text([&] { RMSprop(parameters, {.weight_decay = -1}); }),
            "[rmsprop] expected an epsilon and a weight decay of 0 or more, got 1e-08 and -1");
}

}  // namespace
}  // namespace tandem
