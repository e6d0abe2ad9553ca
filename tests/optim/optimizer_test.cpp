#include "tandem/optim/fused_optimizer.h"

#include <fmt/format.h>

#include "tandem/core/parallel.h"
#include "tandem/device/buffer.h"
#include "tandem/ops/fill.h"
#include "tandem/optim/lars.h"
#include "tandem/tensor/copy.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

// Options that select each update rule.
std::vector<std::pair<std::string, OptimizerOptions>> all_rules() {
  using enum OptimizerKind;
  return {{"sgd", {.kind = sgd, .weight_decay = 0.1}},
          {"momentum", {.kind = sgd, .momentum = 0.9, .weight_decay = 0.1}},
          {"nesterov", {.kind = sgd, .momentum = 0.9, .nesterov = true}},
          {"adam", {.kind = adam, .weight_decay = 0.1}},
          {"adamw", {.kind = adamw, .weight_decay = 0.1}}};
}

// Textbook formulas in f64 for one weight, written independently of update_rule.h.
struct Weight {
  double w = 0, first = 0, second = 0;
  void step(const OptimizerOptions& options, double lr, int t, double g) {
    if (options.kind == OptimizerKind::adamw)
      w -= lr * options.weight_decay * w;
    else
      g += options.weight_decay * w;
    if (options.kind == OptimizerKind::sgd) {
      first = options.momentum * first + g;
      w -= lr * (options.nesterov ? g + options.momentum * first : first);
      return;
    }
    first = options.beta1 * first + (1 - options.beta1) * g;
    second = options.beta2 * second + (1 - options.beta2) * g * g;
    const double mean = first / (1 - std::pow(options.beta1, t));
    const double square = second / (1 - std::pow(options.beta2, t));
    w -= lr * mean / (std::sqrt(square) + options.epsilon);
  }
};

// Sizes around the vector width and one chunk, several chunks, empty, scalar.
NamedTensors many_parameters(DType dtype, Device device) {
  NamedTensors parameters;
  std::uint32_t seed = 0;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{3}, Shape{0, 4}, Shape{17, 33}, Shape{1023},
                             Shape{1024}, Shape{1025}, Shape{70, 100}}) {
    Tensor parameter = random_tensor(shape, dtype, device, ++seed).set_requires_grad();
    parameters.push_back({fmt::format("p{}", seed), parameter});
  }
  return parameters;
}

void set_gradients(const NamedTensors& parameters, std::uint32_t seed) {
  for (const auto& [name, parameter] : parameters)
    parameter.set_grad(random_tensor(parameter.shape(), parameter.dtype(), parameter.device(), ++seed));
}

std::vector<double> all_values(const NamedTensors& tensors) {
  std::vector<double> values;
  for (const auto& [name, tensor] : tensors)
    for (double value : values_of(tensor)) values.push_back(value);
  return values;
}

class OptimizerTest : public OpTest {};

TEST_P(OptimizerTest, Step_FollowsTheFormulasForEveryElement) {
  for (const auto& [name, options] : all_rules()) {
    SCOPED_TRACE(name);
    const NamedTensors parameters = many_parameters(dtype(), device());
    std::vector<Weight> expected;
    for (double value : all_values(parameters)) expected.push_back({.w = value});
    FusedOptimizer optimizer(parameters, options, 0.1);
    for (int t = 1; t <= 4; ++t) {
      set_gradients(parameters, static_cast<std::uint32_t>(100 * t));
      std::vector<double> gradients;
      for (const auto& [parameter_name, parameter] : parameters)
        for (double value : values_of(parameter.grad())) gradients.push_back(value);
      const double rate = 0.1 / t;
      optimizer.set_learning_rate(rate);
      optimizer.step();
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i].step(options, rate, t, gradients[i]);
      const std::vector<double> values = all_values(parameters);
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(values[i], expected[i].w, 2 * tolerance()) << "element " << i << " after step " << t;
      std::vector<double> kept;
      for (const auto& [parameter_name, parameter] : parameters)
        for (double value : values_of(parameter.grad())) kept.push_back(value);
      ASSERT_EQ(kept, gradients) << "a gradient was written to";
    }
    EXPECT_EQ(optimizer.step_count(), 4);
  }
}

TEST_P(OptimizerTest, ParametersWithoutGradient_StayUnchanged) {
  const NamedTensors parameters = many_parameters(dtype(), device());
  for (const auto& [name, options] : all_rules()) {
    set_gradients(parameters, 5);
    for (std::size_t i = 0; i < parameters.size(); i += 2) parameters[i].tensor.set_grad(Tensor());
    FusedOptimizer optimizer(parameters, options, 0.1);
    std::vector<std::vector<double>> before;
    for (const auto& [parameter_name, parameter] : parameters) before.push_back(values_of(parameter));
    optimizer.step();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      EXPECT_EQ(values_of(parameters[i].tensor) == before[i], i % 2 == 0 || before[i].empty()) << name << i;
  }
}

TEST_P(OptimizerTest, Gradients_MayBeStridedViews) {
  const auto result = [&](const Tensor& gradient) {
    Tensor parameter = random_tensor({6, 5}, dtype(), device(), 1).set_requires_grad();
    parameter.set_grad(gradient);
    SGD({{"w", parameter}}, {.lr = 0.5}).step();
    return values_of(parameter);
  };
  const Tensor transposed = random_tensor({5, 6}, dtype(), device(), 2).transpose();
  EXPECT_EQ(result(transposed), result(transposed.clone()));
  // Contiguous, but not aligned to 16 bytes.
  const Tensor cut = random_tensor({31}, dtype(), device(), 3).slice(0, 1, 31).reshape({6, 5});
  EXPECT_EQ(result(cut), result(cut.clone()));
  const Tensor repeated = random_tensor({1}, dtype(), device(), 4).broadcast_view({6, 5});
  EXPECT_EQ(result(repeated), result(repeated.clone()));
}

TEST_P(OptimizerTest, SavedState_ContinuesWithTheSameBits) {
  for (const auto& [name, options] : all_rules()) {
    SCOPED_TRACE(name);
    NamedTensors whole = many_parameters(dtype(), device()), resumed = many_parameters(dtype(), device());
    FusedOptimizer first(whole, options, 0.05);
    const auto run = [](FusedOptimizer& optimizer, const NamedTensors& parameters, std::uint32_t from,
                        std::uint32_t to) {
      for (std::uint32_t step = from; step < to; ++step) {
        set_gradients(parameters, 31 * step);
        optimizer.step();
      }
    };
    run(first, whole, 0, 3);
    FusedOptimizer second(resumed, options, 0.05);
    for (std::size_t i = 0; i < whole.size(); ++i)
      copy_into(resumed[i].tensor.detach(), whole[i].tensor.detach());
    second.load_state(first.state());
    EXPECT_EQ(second.step_count(), 3);
    run(first, whole, 3, 6);
    run(second, resumed, 3, 6);
    EXPECT_EQ(all_values(resumed), all_values(whole));
    EXPECT_EQ(all_values(second.state()), all_values(first.state()));
  }
}

TEST_P(OptimizerTest, SteadyState_AllocatesNothing) {
  const NamedTensors parameters = many_parameters(dtype(), device());
  Adam optimizer(parameters);
  set_gradients(parameters, 1);
  optimizer.step();
  const PoolStatistics before = pool_statistics(device());
  for (int i = 0; i < 10; ++i) optimizer.step();
  const PoolStatistics after = pool_statistics(device());
  EXPECT_EQ(after.system_allocations, before.system_allocations);
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
}

TEST_P(OptimizerTest, TakesMoreParametersThanOneLaunchHolds) {
  NamedTensors parameters;
  for (int i = 0; i < 600; ++i)
    parameters.push_back({std::to_string(i), full({3}, i, dtype(), device()).set_requires_grad()});
  for (const auto& [name, parameter] : parameters) parameter.set_grad(ones({3}, dtype(), device()));
  SGD(parameters, {.lr = 1}).step();
  for (int i = 0; i < 600; ++i)
    ASSERT_EQ(values_of(parameters[static_cast<std::size_t>(i)].tensor), std::vector<double>(3, i - 1));
}

INSTANTIATE_TEST_SUITE_P(Devices, OptimizerTest, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

TEST(Optimizer, AnyNumberOfThreads_GivesTheSameBits) {
  const auto run = [](int threads) {
    const ThreadLimit limit(threads);
    Tensor parameter = random_tensor({50001}, DType::f32, cpu_device, 1).set_requires_grad();
    parameter.set_grad(random_tensor({50001}, DType::f32, cpu_device, 2));
    Adam optimizer({{"w", parameter}}, {.lr = 0.1});
    for (int i = 0; i < 3; ++i) optimizer.step();
    return values_of(parameter);
  };
  EXPECT_EQ(run(1), run(2));
}

TEST(Optimizer, State_IsNamedAfterTheParameters) {
  const NamedTensors parameters{{"0.weight", ones({2, 3}).set_requires_grad()}};
  const auto names = [&](const Optimizer& optimizer) {
    std::string all;
    for (const auto& [name, tensor] : optimizer.state()) all += name + " ";
    return all;
  };
  EXPECT_EQ(names(SGD(parameters)), "step ");
  EXPECT_EQ(names(SGD(parameters, {.momentum = 0.9})), "0.weight.momentum step ");
  EXPECT_EQ(names(AdamW(parameters)), "0.weight.mean 0.weight.square step ");
}

TEST(Optimizer, SetStepCount_ContinuesFromThere) {
  NamedTensors parameters{{"w", ones({2}).set_requires_grad()}};
  Adam optimizer(parameters);
  optimizer.set_step_count(41);
  set_gradients(parameters, 1);
  optimizer.step();
  EXPECT_EQ(optimizer.step_count(), 42);
  EXPECT_THROW(optimizer.set_step_count(-1), Error);
}

TEST(Optimizer, ZeroGradDropsGradientsWithoutWritingToThem) {
  const NamedTensors parameters = many_parameters(DType::f32, cpu_device);
  set_gradients(parameters, 1);
  const Tensor gradient = parameters[2].tensor.grad();
  const auto before = values_of(gradient);
  SGD(parameters).zero_grad();
  for (const auto& [name, parameter] : parameters) EXPECT_FALSE(parameter.grad().defined());
  EXPECT_EQ(values_of(gradient), before);
}

TEST(Optimizer, InvalidOptions_Throw) {
  const NamedTensors one{{"w", ones({2}).set_requires_grad()}};
  EXPECT_EQ(error_text([&] { SGD(one, {.lr = -1}); }),
            "[optimizer] expected a finite learning rate of 0 or more, got -1");
  EXPECT_EQ(error_text([&] { SGD(one, {.momentum = -0.5}); }),
            "[optimizer] expected a finite momentum of 0 or more, got -0.5");
  EXPECT_EQ(error_text([&] { SGD(one, {.nesterov = true}); }),
            "[optimizer] expected a momentum above 0 for Nesterov, got 0");
  EXPECT_EQ(error_text([&] { Adam(one, {.beta2 = 1}); }),
            "[optimizer] expected betas of 0 or more and less than 1, got 0.9 and 1");
  EXPECT_EQ(error_text([&] { AdamW(one, {.weight_decay = -1}); }),
            "[optimizer] expected a finite weight decay of 0 or more, got -1");
  EXPECT_EQ(error_text([&] { SGD({}, {}); }), "[optimizer] expected at least one parameter, got none");
  EXPECT_EQ(error_text([&] { SGD({one[0], one[0]}); }), "[optimizer] expected distinct names, got 'w' twice");
  EXPECT_EQ(error_text([&] {
              SGD({{"w", ones({2}, DType::bf16)}});
            }),
            "[optimizer] expected parameters of f32 or f64, got bf16");
  EXPECT_EQ(error_text([&] {
              SGD({{"w", ones({2, 3}).transpose()}});
            }),
            "[optimizer] expected contiguous parameters, got a strided view for 'w'");
  SGD plain(one);
  EXPECT_EQ(error_text([&] { plain.set_momentum(0.9); }),
            "[optimizer] expected momentum to stay zero or nonzero as at construction, got 0.9 after 0");
  EXPECT_EQ(error_text([&] { plain.apply(); }), "[optimizer] expected prepare_step() before apply()");
}

TEST(Optimizer, StateOfAnotherOptimizer_ThrowsAndChangesNothing) {
  const NamedTensors one{{"w", ones({2}).set_requires_grad()}};
  Adam adam(one);
  SGD sgd(one, {.momentum = 0.9});
  EXPECT_EQ(
      error_text([&] { adam.load_state(sgd.state()); }),
      "[optimizer] expected the 3 tensors of this model; missing: w.mean, w.square; unexpected: w.momentum");
  NamedTensors negative = sgd.state();
  negative[0].tensor = ones({2});
  negative[1].tensor = full({}, -1, DType::i64);
  EXPECT_EQ(error_text([&] { sgd.load_state(negative); }),
            "[optimizer] expected a step count of 0 or more, got -1");
  EXPECT_EQ(values_of(sgd.state()[0].tensor), (std::vector<double>{0, 0}));
  one[0].tensor.set_grad(ones({3}));
  EXPECT_EQ(error_text([&] { sgd.step(); }), "[optimizer] expected a gradient of shape [2] for 'w', got [3]");
}

// Each parameter as with an optimizer of its own rate.
TEST(RateFactors, EqualOptimizersOfOtherRates) {
  for (const Device device : test_devices())
    for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adamw}) {
      const OptimizerOptions options{
          .kind = kind, .momentum = kind == OptimizerKind::sgd ? 0.9 : 0, .weight_decay = 0.1};
      const std::vector<double> factors{1, 0.5, 0};
      NamedTensors together, alone;
      for (const char* const name : {"a", "b", "c"})
        for (NamedTensors* const list : {&together, &alone})
          list->push_back({name, random_tensor({1500}, DType::f32, device, 3, -1, 1).set_requires_grad()});
      FusedOptimizer all(together, options, 0.1);
      all.set_rate_factors(factors);
      for (std::size_t i = 0; i < 3; ++i) {
        FusedOptimizer one({alone[i]}, options, 0.1 * factors[i]);
        for (std::uint32_t step = 0; step < 3; ++step) {
          alone[i].tensor.set_grad(random_tensor({1500}, DType::f32, device, step, -1, 1));
          one.step();
        }
      }
      for (std::uint32_t step = 0; step < 3; ++step) {
        for (const auto& [name, tensor] : together)
          tensor.set_grad(random_tensor({1500}, DType::f32, device, step, -1, 1));
        all.step();
      }
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_EQ(values_of(together[i].tensor), values_of(alone[i].tensor)) << i;
    }
}

// A rate times 64 whose decay is a 64th: the gradient moves the weight 64 times as far, the decay as far.
TEST(RateFactors, WithDecayFactors_EqualOptimizersOfOtherDecays) {
  for (const Device device : test_devices())
    for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adamw}) {
      OptimizerOptions options{.kind = kind,
                               .momentum = kind == OptimizerKind::sgd ? 0.85 : 0,
                               .nesterov = kind == OptimizerKind::sgd,
                               .weight_decay = 0.5};
      NamedTensors together, alone;
      for (const char* const name : {"weight", "bias"})
        for (NamedTensors* const list : {&together, &alone})
          list->push_back({name, random_tensor({1500}, DType::f32, device, 3, -1, 1).set_requires_grad()});
      FusedOptimizer all(together, options, 0.01);
      all.set_rate_factors({1, 64}, {1, 1.0 / 64});
      FusedOptimizer weight({alone[0]}, options, 0.01);
      options.weight_decay = 0.5 / 64;
      FusedOptimizer bias({alone[1]}, options, 0.64);
      for (std::uint32_t step = 0; step < 3; ++step) {
        for (const NamedTensors* const list : {&together, &alone})
          for (const auto& [name, tensor] : *list)
            tensor.set_grad(random_tensor({1500}, DType::f32, device, step, -1, 1));
        all.step();
        weight.step();
        bias.step();
      }
      for (std::size_t i = 0; i < 2; ++i)
        EXPECT_EQ(values_of(together[i].tensor), values_of(alone[i].tensor)) << i;
    }
}

TEST(RateFactors, BadOnes_AreErrors) {
  const NamedTensors parameters{{"a", zeros({2})}, {"b", zeros({2})}};
  FusedOptimizer sgd(parameters, {.kind = OptimizerKind::sgd}, 0.1);
  EXPECT_EQ(error_text([&] { sgd.set_rate_factors({1}); }),
            "[optimizer] expected 2 rate factors, one per parameter, got 1");
  EXPECT_EQ(error_text([&] {
              sgd.set_rate_factors({1, -1});
            }),
            "[optimizer] expected finite rate factors of 0 or more, got -1");
  EXPECT_EQ(error_text([&] {
              sgd.set_rate_factors({1, 1}, {1});
            }),
            "[optimizer] expected 2 decay factors, one per parameter, got 1");
  Lars lars(parameters);
  EXPECT_EQ(error_text([&] {
              lars.set_rate_factors({1, 1});
            }),
            "[optimizer] expected an optimizer whose rates can differ, got another");
}

}  // namespace
}  // namespace tandem
