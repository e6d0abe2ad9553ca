// LARS against stored steps of its formula in NumPy, and against the formula in f64 for shapes around the
// sizes of chunks.
#include "tandem/optim/lars.h"

#include <fmt/format.h>

#include "tandem/core/parallel.h"
#include "tandem/device/buffer.h"
#include "tandem/device/graph_runner.h"
#include "tandem/ops/fill.h"
#include "tandem/optim/optimizer_registry.h"
#include "tandem/tensor/copy.h"
#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

struct Parameter {
  std::vector<double> w, velocity;
  bool is_adapted = false;

  void step(const LarsOptions& options, const std::vector<double>& g) {
    double w_square = 0, g_square = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      w_square += w[i] * w[i];
      g_square += g[i] * g[i];
    }
    const double w_norm = std::sqrt(w_square), decay = is_adapted ? options.weight_decay : 0;
    double rate = options.lr;
    if (is_adapted && w_norm > 0)
      rate *= options.trust_coefficient * w_norm / (std::sqrt(g_square) + decay * w_norm);
    for (std::size_t i = 0; i < w.size(); ++i) {
      velocity[i] = options.momentum * velocity[i] + rate * (g[i] + decay * w[i]);
      w[i] -= velocity[i];
    }
  }
};

// Sizes around the vector width and one chunk, several chunks, empty, scalar; vectors and matrices.
NamedTensors many_parameters(DType dtype, Device device) {
  NamedTensors parameters;
  std::uint32_t seed = 0;
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{0, 4}, Shape{1, 1}, Shape{17, 33}, Shape{1025}, Shape{1, 1023},
        Shape{4, 256}, Shape{41, 25}, Shape{3, 3, 5, 7}, Shape{70, 100}, Shape{600, 501}}) {
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

class LarsTest : public OpTest {};

TEST_P(LarsTest, Steps_MatchStoredOnes) {
  for (const golden::Case& one : golden_cases("lars", "contrastive")) {
    SCOPED_TRACE(one.name);
    NamedTensors parameters;
    for (int i = 0; i < one.params.at("parameters"); ++i) {
      const std::string key = fmt::format("p{}", i);
      parameters.push_back({key, golden_tensor(one, key, dtype(), device()).set_requires_grad()});
    }
    Lars optimizer(parameters, {.momentum = one.params.at("momentum"),
                                .weight_decay = one.params.at("weight_decay"),
                                .trust_coefficient = one.params.at("trust_coefficient")});
    const std::vector<double> rates = one.array("rates").values<double>();
    for (std::size_t step = 0; step < rates.size(); ++step) {
      const auto row = [&](const std::string& key) {
        const auto at = static_cast<std::int64_t>(step);
        const Tensor all = golden_tensor(one, key, dtype(), device());
        return all.slice(0, at, at + 1);
      };
      for (std::size_t i = 0; i < parameters.size(); ++i)
        parameters[i].tensor.set_grad(row(fmt::format("g{}", i)).reshape(parameters[i].tensor.shape()));
      optimizer.set_learning_rate(rates[step]);
      optimizer.step();
      for (std::size_t i = 0; i < parameters.size(); ++i)
        expect_values(parameters[i].tensor, values_of(row(fmt::format("w{}", i))), tolerance());
    }
  }
}

TEST_P(LarsTest, Step_FollowsTheFormulaForEveryShape) {
  for (const LarsOptions& options :
       {LarsOptions{.lr = 0.5, .weight_decay = 0.1, .trust_coefficient = 0.02},
        LarsOptions{.lr = 0.5, .momentum = 0, .weight_decay = 0, .trust_coefficient = 0.1}}) {
    const NamedTensors parameters = many_parameters(dtype(), device());
    std::vector<Parameter> expected;
    for (const auto& [name, tensor] : parameters)
      expected.push_back({.w = values_of(tensor),
                          .velocity = std::vector<double>(values_of(tensor).size()),
                          .is_adapted = tensor.rank() > 1});
    Lars optimizer(parameters, options);
    for (std::uint32_t t = 1; t <= 3; ++t) {
      set_gradients(parameters, 100 * t);
      for (std::size_t i = 0; i < parameters.size(); ++i)
        expected[i].step(options, values_of(parameters[i].tensor.grad()));
      optimizer.step();
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        SCOPED_TRACE(parameters[i].name);
        expect_values(parameters[i].tensor, expected[i].w, 2 * tolerance());
      }
    }
    EXPECT_EQ(optimizer.step_count(), 3);
  }
}

TEST_P(LarsTest, ZeroWeightsAndGradients_TakePlainSteps) {
  const Tensor zero = zeros({2, 2}, dtype(), device()).set_requires_grad();
  const Tensor still = ones({2, 2}, dtype(), device()).set_requires_grad();
  const Tensor frozen = ones({3, 3}, dtype(), device()).set_requires_grad();
  zero.set_grad(ones({2, 2}, dtype(), device()));
  still.set_grad(zeros({2, 2}, dtype(), device()));
  Lars optimizer({{"zero", zero}, {"still", still}, {"frozen", frozen}}, {.lr = 0.5, .weight_decay = 0});
  optimizer.step();
  expect_values(zero, std::vector<double>(4, -0.5), tolerance());
  expect_values(still, std::vector<double>(4, 1), 0);
  expect_values(frozen, std::vector<double>(9, 1), 0);
}

TEST_P(LarsTest, SavedState_ContinuesWithTheSameBits) {
  const NamedTensors whole = many_parameters(dtype(), device()), resumed = many_parameters(dtype(), device());
  const auto run = [](Lars& optimizer, const NamedTensors& parameters, std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t step = from; step < to; ++step) {
      set_gradients(parameters, 31 * step);
      optimizer.step();
    }
  };
  Lars first(whole);
  run(first, whole, 0, 2);
  for (std::size_t i = 0; i < whole.size(); ++i)
    copy_into(resumed[i].tensor.detach(), whole[i].tensor.detach());
  Lars second(resumed);
  second.load_state(first.state());
  run(first, whole, 2, 4);
  run(second, resumed, 2, 4);
  EXPECT_EQ(all_values(resumed), all_values(whole));
  EXPECT_EQ(all_values(second.state()), all_values(first.state()));
}

TEST_P(LarsTest, CapturedGraph_FollowsRatesAndGradients) {
  const Stream stream(device());
  const StreamScope scope(stream);
  const NamedTensors captured = many_parameters(dtype(), device()),
                     eager = many_parameters(dtype(), device());
  Lars replayed(captured), stepped(eager);
  set_gradients(captured, 1);
  GraphRunner runner(device());
  for (std::uint32_t step = 1; step <= 5; ++step) {
    set_gradients(eager, 7 * step);
    for (std::size_t i = 0; i < eager.size(); ++i)
      copy_into(captured[i].tensor.grad(), eager[i].tensor.grad());
    replayed.set_learning_rate(0.1 * step);
    stepped.set_learning_rate(0.1 * step);
    stepped.step();
    replayed.prepare_step();
    runner.run([&] { replayed.apply(); });
  }
  EXPECT_EQ(all_values(captured), all_values(eager));
  EXPECT_EQ(runner.captured(), device().is_cuda());
}

TEST_P(LarsTest, SteadyState_AllocatesNothing) {
  const NamedTensors parameters = many_parameters(dtype(), device());
  Lars optimizer(parameters);
  set_gradients(parameters, 1);
  optimizer.step();
  const PoolStatistics before = pool_statistics(device());
  for (int i = 0; i < 10; ++i) optimizer.step();
  const PoolStatistics after = pool_statistics(device());
  EXPECT_EQ(after.system_allocations, before.system_allocations);
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
}

TEST_P(LarsTest, TakesMoreParametersThanOneLaunchHolds) {
  NamedTensors parameters;
  for (int i = 0; i < 600; ++i)
    parameters.push_back({std::to_string(i), full({1, 2}, i, dtype(), device()).set_requires_grad()});
  for (const auto& [name, parameter] : parameters) parameter.set_grad(ones({1, 2}, dtype(), device()));
  Lars(parameters, {.lr = 1, .weight_decay = 0, .trust_coefficient = 0.5}).step();
  expect_values(parameters[0].tensor, {-1, -1}, tolerance());
  for (int i = 1; i < 600; ++i)
    expect_values(parameters[static_cast<std::size_t>(i)].tensor, std::vector<double>(2, 0.5 * i),
                  tolerance());
}

INSTANTIATE_TEST_SUITE_P(Devices, LarsTest, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

TEST(Lars, AnyNumberOfThreads_GivesTheSameBits) {
  const auto run = [](int threads) {
    const ThreadLimit limit(threads);
    const NamedTensors parameters = many_parameters(DType::f32, cpu_device);
    Lars optimizer(parameters);
    for (std::uint32_t step = 0; step < 3; ++step) {
      set_gradients(parameters, step);
      optimizer.step();
    }
    return all_values(parameters);
  };
  EXPECT_EQ(run(1), run(2));
}

TEST(Lars, ByName_HasDecayMomentumAndNamedState) {
  const NamedTensors parameters{{"w", ones({2, 2}).set_requires_grad()}};
  const auto optimizer = make_optimizer("lars", parameters, {.momentum = 0.9, .weight_decay = 0.1}, 2);
  EXPECT_EQ(optimizer->state()[0].name, "w.momentum");
  EXPECT_EQ(optimizer->fused(), nullptr);  // the engines must not take it for SGD
  parameters[0].tensor.set_grad(ones({2, 2}));
  optimizer->step();
  const double rate = 2 * 0.001 * 2 / (2 + 0.1 * 2);
  expect_values(parameters[0].tensor, std::vector<double>(4, 1 - rate * 1.1), 1e-6);
}

TEST(Lars, InvalidOptions_AreErrors) {
  const NamedTensors one{{"w", ones({2, 2}).set_requires_grad()}};
  EXPECT_EQ(error_text([&] { Lars(one, {.trust_coefficient = 0}); }),
            "[lars] expected a finite trust coefficient above 0, got 0");
  EXPECT_EQ(error_text([&] { Lars(one, {.weight_decay = -1}); }),
            "[optimizer] expected a finite weight decay of 0 or more, got -1");
}

}  // namespace
}  // namespace tandem
