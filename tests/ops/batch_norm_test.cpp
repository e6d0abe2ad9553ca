#include "tandem/ops/conv/batch_norm.h"

#include <algorithm>

#include "tandem/core/parallel.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/cast.h"
#include "tandem/tensor/tape.h"
#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

class BatchNormTest : public OpTest {};

// The inputs of a case come in the order of their names: weight, x, bias and the residual where there is one.
// Cases of two values per channel, or far from zero, lose digits in f32 with any algorithm.
TEST_P(BatchNormTest, OutputAndRunningStatistics_EqualPyTorch) {
  expect_golden(
      "batch_norm", dtype(), device(), 10 * tolerance(),
      [&](const golden::Case& one, const std::vector<Tensor>& in) {
        BatchNormStatistics running{.mean = golden_tensor(one, "running_mean", dtype(), device()),
                                    .variance = golden_tensor(one, "running_variance", dtype(), device())};
        Tensor y = batch_norm(
            in[1], in[0], in[2], running,
            {.training = one.params.at("training"),
             .momentum = one.params.at("momentum"),
             .epsilon = one.params.at("epsilon"),
             .activation = one.params.at("relu").get<bool>() ? FusedActivation::relu : FusedActivation::none},
            in.size() > 3 ? in[3] : Tensor());
        expect_values(running.mean, one.array("moved_mean").values<double>(), tolerance());
        expect_values(running.variance, one.array("moved_variance").values<double>(), tolerance());
        return y;
      },
      "conv");
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchNormTest, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

struct Parameters {
  Tensor weight;
  Tensor bias;
  BatchNormStatistics running;
};

Parameters parameters_of(std::int64_t channels, DType dtype, Device device) {
  return {random_tensor({channels}, dtype, device, 2, 0.5, 1.5),
          random_tensor({channels}, dtype, device, 3),
          {random_tensor({channels}, dtype, device, 4), random_tensor({channels}, dtype, device, 5, 0.5, 2)}};
}

class BatchNormDevice : public testing::TestWithParam<Device> {};

TEST_P(BatchNormDevice, Gradients_EqualCentralDifferences) {
  for (const bool training : {true, false}) {
    const Tensor x = random_tensor({2, 3, 2, 3}, DType::f64, GetParam(), 1);
    const Tensor residual = random_tensor(x.shape(), DType::f64, GetParam(), 6);
    const auto p = parameters_of(3, DType::f64, GetParam());
    const auto f = [&](const std::vector<Tensor>& in, FusedActivation activation) {
      BatchNormStatistics running{p.running.mean.clone(), p.running.variance.clone()};
      return batch_norm(in[0], in[1], in[2], running, {.training = training, .activation = activation},
                        in.size() > 3 ? in[3] : Tensor());
    };
    for (const FusedActivation activation : {FusedActivation::none, FusedActivation::relu})
      expect_gradients([&](const auto& in) { return f(in, activation); }, {x, p.weight, p.bias, residual},
                       1e-5);
    for (const FusedActivation activation : {FusedActivation::silu, FusedActivation::hardswish})
      expect_gradients([&](const auto& in) { return f(in, activation); }, {x, p.weight, p.bias}, 1e-5);
  }
}

// The mean is much larger than the deviation, with few or many rows: no cancellation.
TEST_P(BatchNormDevice, F32_FarFromZero_IsAccurate) {
  for (const std::int64_t rows : {5, 5000}) {
    const Tensor x = random_tensor({rows, 70}, DType::f32, GetParam(), 1, 999, 1001);
    auto p = parameters_of(70, DType::f32, GetParam());
    auto exact = parameters_of(70, DType::f64, GetParam());
    const Tensor wide = tensor_of(values_of(x), x.shape(), DType::f64, GetParam());
    const Tensor weight = tensor_of(values_of(p.weight), {70}, DType::f64, GetParam());
    const Tensor bias = tensor_of(values_of(p.bias), {70}, DType::f64, GetParam());
    const Tensor expected = batch_norm(wide, weight, bias, exact.running);
    expect_values(batch_norm(x, p.weight, p.bias, p.running), values_of(expected), 2e-4);
    expect_values(p.running.variance, values_of(exact.running.variance), 1e-5);
  }
}

TEST_P(BatchNormDevice, Bf16_ComputesInF32) {
  auto p = parameters_of(16, DType::f32, GetParam()), q = parameters_of(16, DType::f32, GetParam());
  Tensor x = random_tensor({4, 3, 3, 16}, DType::bf16, GetParam(), 1).set_requires_grad();
  Tensor wide = tensor_of(values_of(x), x.shape(), DType::f32, GetParam()).set_requires_grad();
  const Tensor dy = random_tensor(x.shape(), DType::bf16, GetParam(), 9);
  const Tensor y = batch_norm(x, p.weight, p.bias, p.running);
  const Tensor expected = batch_norm(wide, q.weight, q.bias, q.running);
  EXPECT_EQ(y.dtype(), DType::bf16);
  expect_values(y, values_of(expected), 1e-2);
  expect_values(p.running.mean, values_of(q.running.mean), 1e-5);
  backward(y, dy);
  backward(expected, tensor_of(values_of(dy), x.shape(), DType::f32, GetParam()));
  expect_values(x.grad(), values_of(wide.grad()), 1e-2);
}

TEST_P(BatchNormDevice, Gradients_ExistOnlyWhereRequired) {
  const Tensor values = random_tensor({4, 3}, DType::f32, GetParam(), 1);
  for (const bool training : {true, false})
    for (const FusedActivation activation :
         {FusedActivation::none, FusedActivation::relu, FusedActivation::silu, FusedActivation::hardswish})
      for (int wanted = 0; wanted < 4; ++wanted) {
        auto p = parameters_of(3, DType::f32, GetParam());
        Tensor x = values.clone(), residual = values.clone();
        Tensor* const leaves[] = {&x, &p.weight, &p.bias, &residual};
        leaves[wanted]->set_requires_grad();
        const BatchNormOptions options{.training = training, .activation = activation};
        const bool sums = activation == FusedActivation::none || activation == FusedActivation::relu;
        if (!sums && wanted == 3) continue;
        const Tensor added = sums ? residual : Tensor();
        backward(sum(batch_norm(x, p.weight, p.bias, p.running, options, added)));
        for (int k = 0; k < 4; ++k) EXPECT_EQ(leaves[k]->grad().defined(), k == wanted);
        const NoGrad no_grad;
        EXPECT_FALSE(batch_norm(x, p.weight, p.bias, p.running, options, added).requires_grad());
      }
}

// Two images per ghost batch and a remainder of one equal three calls, statistics included.
TEST_P(BatchNormDevice, GhostBatches_EqualSeparateCalls) {
  for (const std::int64_t side : {3, 40}) {
    const std::int64_t channels = 20;
    const Tensor x = random_tensor({5, side, side, channels}, DType::f32, GetParam(), 1, -3, 5);
    const Tensor residual = random_tensor(x.shape(), DType::f32, GetParam(), 2);
    auto p = parameters_of(channels, DType::f32, GetParam()),
         q = parameters_of(channels, DType::f32, GetParam());
    p.running.batches_tracked = Tensor::from(std::vector<std::int64_t>{7}, {1}, GetParam());
    const Tensor y =
        batch_norm(x, p.weight, p.bias, p.running,
                   {.activation = FusedActivation::relu, .ghost_batch_rows = 2 * side * side}, residual);
    std::vector<double> expected;
    for (std::int64_t first = 0; first < 5; first += 2) {
      const std::int64_t end = std::min<std::int64_t>(first + 2, 5);
      const Tensor part = batch_norm(x.slice(0, first, end), q.weight, q.bias, q.running,
                                     {.activation = FusedActivation::relu}, residual.slice(0, first, end));
      for (const double value : values_of(part)) expected.push_back(value);
    }
    expect_values(y, expected, 1e-5);
    expect_values(p.running.mean, values_of(q.running.mean), 1e-5);
    expect_values(p.running.variance, values_of(q.running.variance), 1e-5);
    EXPECT_EQ(p.running.batches_tracked.item<std::int64_t>(), 10);
  }
}

// The fused pass and its gradients, against the activation as an operation of its own.
TEST_P(BatchNormDevice, FusedActivations_EqualSeparateOnes) {
  using Function = Tensor (*)(const Tensor&);
  for (const auto& [activation, function] : {std::pair{FusedActivation::relu, Function(relu)},
                                             {FusedActivation::silu, Function(silu)},
                                             {FusedActivation::hardswish, Function(hardswish)}})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const std::int64_t channels : {3, 16, 136}) {
        const auto run = [&](bool fused) {
          auto p = parameters_of(channels, DType::f32, GetParam());
          const DType own = fused ? dtype : DType::f32;  // the argument is not rounded where it is fused
          const auto random = [&](std::uint32_t seed) {
            return cast(random_tensor({3, 5, 4, channels}, dtype, GetParam(), seed, -4, 4), own);
          };
          Tensor x = random(1);
          for (Tensor* const leaf : {&x, &p.weight, &p.bias}) leaf->set_requires_grad();
          const Tensor y = fused ? batch_norm(x, p.weight, p.bias, p.running, {.activation = activation})
                                 : function(batch_norm(x, p.weight, p.bias, p.running));
          backward(y, random(2));
          return std::vector{y.detach(), x.grad(), p.weight.grad(), p.bias.grad()};
        };
        const std::vector<Tensor> fused = run(true), separate = run(false);
        for (std::size_t i = 0; i < fused.size(); ++i)
          expect_values(fused[i], values_of(separate[i]), dtype == DType::bf16 ? 1e-2 : 1e-5);
      }
}

// Values that keep the arguments of a ReLU away from 0, where rounding would decide.
Tensor two_sided(const Shape& shape, DType dtype, Device device, std::uint32_t seed, double low,
                 double high) {
  std::vector<double> values =
      values_of(random_tensor(shape, DType::f64, cpu_device, seed, low - high, high - low));
  for (double& value : values) value += value < 0 ? -low : low;
  return tensor_of(values, shape, dtype, device);
}

// Output, statistics and gradients of one call, computed in `dtype` from values that are rounded to `given`.
struct NormCase {
  std::int64_t rows;
  std::int64_t channels;
  FusedActivation activation;
  bool has_residual;
  bool training;
  DType given;
  int uses = 1;  // of the output: each adds a term to its gradient

  std::vector<Tensor> run(DType dtype, Device device) const {
    const DType parameter = dtype == DType::f64 ? DType::f64 : DType::f32;
    const auto rounded = [&](const Tensor& values) {
      return tensor_of(values_of(values), values.shape(), dtype, device);
    };
    // Parameters that begin in the middle of a 16-byte word.
    const auto inner = [&](std::uint32_t seed, double low, double high) {
      const Tensor all = random_tensor({channels + 1}, DType::f32, cpu_device, seed, low, high);
      return tensor_of(values_of(all), all.shape(), parameter, device).slice(0, 1, channels + 1).detach();
    };
    const auto whole = [&](std::uint32_t seed, double low, double high) {
      const Tensor all = random_tensor({channels}, DType::f32, cpu_device, seed, low, high);
      return tensor_of(values_of(all), all.shape(), parameter, device);
    };
    Tensor x = rounded(two_sided({rows, channels}, given, cpu_device, 1, 1, 3));
    Tensor residual = has_residual ? rounded(two_sided(x.shape(), given, cpu_device, 2, 8, 9)) : Tensor();
    const Tensor dy = rounded(random_tensor(x.shape(), given, cpu_device, 3));
    Tensor weight = inner(4, 0.5, 1.5), bias = whole(5, -0.1, 0.1);
    BatchNormStatistics running{whole(6, -0.1, 0.1), whole(7, 3, 4)};
    for (Tensor* const leaf : {&x, &residual, &weight, &bias})
      if (leaf->defined()) leaf->set_requires_grad();
    const Tensor y =
        batch_norm(x, weight, bias, running, {.training = training, .activation = activation}, residual);
    // The gradients of the terms are 3 · dy, −2 · dy and 0.5 · dy.
    Tensor used = uses == 1 ? y : add(multiply(y, 3), multiply(y, -2));
    if (uses == 3) used = add(used, multiply(y, 0.5));
    backward(used, dy);
    std::vector<Tensor> results{y.detach(), running.mean,  running.variance,
                                x.grad(),   weight.grad(), bias.grad()};
    if (has_residual) results.push_back(residual.grad());
    return results;
  }
};

// One row or many, one channel or many, with and without whole packs of channels.
TEST_P(BatchNormDevice, AnyShape_EqualsF64) {
  using Size = std::pair<std::int64_t, std::int64_t>;
  for (const auto& [rows, channels] : {Size{2, 1},
                                       {7, 3},
                                       {70, 8},
                                       {1500, 8},
                                       {5000, 20},
                                       {9000, 16},
                                       {300, 72},
                                       {900, 136},
                                       {500, 264},
                                       {140, 1024},
                                       {130, 2056}})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const bool has_residual : {false, true})
        for (const FusedActivation activation : {FusedActivation::none, FusedActivation::relu}) {
          SCOPED_TRACE(testing::Message()
                       << rows << " rows of " << channels << " in " << name_of(dtype) << ", residual "
                       << has_residual << ", activation " << static_cast<int>(activation));
          const NormCase one{rows, channels, activation, has_residual, channels != 72, dtype};
          const std::vector<Tensor> actual = one.run(dtype, GetParam()),
                                    expected = one.run(DType::f64, cpu_device);
          ASSERT_EQ(actual.size(), expected.size());
          for (std::size_t i = 0; i < actual.size(); ++i) {
            SCOPED_TRACE(testing::Message() << "result " << i);
            const bool rounds = actual[i].dtype() == DType::bf16;
            expect_values(actual[i], values_of(expected[i]), rounds ? 1e-2 : 1e-4);
          }
        }
}

// The terms of the gradient are added on the way.
TEST_P(BatchNormDevice, SeveralUsesOfTheOutput_EqualF64) {
  for (const std::int64_t channels : {3, 8, 24, 264})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const int uses : {2, 3})
        for (const bool has_residual : {false, true})
          for (const FusedActivation activation : {FusedActivation::none, FusedActivation::relu}) {
            SCOPED_TRACE(testing::Message() << channels << " channels in " << name_of(dtype) << ", " << uses
                                            << " uses, residual " << has_residual << ", activation "
                                            << static_cast<int>(activation));
            const NormCase one{700, channels, activation, has_residual, true, dtype, uses};
            const std::vector<Tensor> actual = one.run(dtype, GetParam()),
                                      expected = one.run(DType::f64, cpu_device);
            for (std::size_t i = 0; i < actual.size(); ++i) {
              SCOPED_TRACE(testing::Message() << "result " << i);
              const bool rounds = dtype == DType::bf16 && i != 1 && i != 2;  // not the running statistics
              expect_values(actual[i], values_of(expected[i]), rounds ? 2e-2 : 1e-4);
            }
          }
}

// So many rows that a CUDA pass over them has several waves: without statistics, parts equal the whole.
TEST_P(BatchNormDevice, ManyRows_EqualPartsOfThem) {
  constexpr std::int64_t channels = 8;
  const std::int64_t outer = GetParam().is_cuda() ? 1100 : 3, rows = outer * 4099;
  for (const FusedActivation activation : {FusedActivation::none, FusedActivation::relu}) {
    const auto random = [&](std::uint32_t seed) {
      return add(random_tensor({outer, 1, channels}, DType::bf16, GetParam(), seed),
                 random_tensor({1, 4099, channels}, DType::bf16, GetParam(), seed + 1))
          .reshape({rows, channels});
    };
    const Tensor x = random(1), dy = random(3);
    auto p = parameters_of(channels, DType::f32, GetParam());
    const auto run = [&](std::int64_t begin, std::int64_t end) {
      Tensor part = x.slice(0, begin, end).detach();
      part.set_requires_grad();
      const Tensor y =
          batch_norm(part, p.weight, p.bias, p.running, {.training = false, .activation = activation});
      backward(y, dy.slice(0, begin, end));
      return std::pair{y.detach(), part.grad()};
    };
    const auto [y, dx] = run(0, rows);
    for (std::int64_t begin = 0; begin < rows; begin += rows / 7) {
      const std::int64_t end = std::min(rows, begin + rows / 7);
      const auto [part, dpart] = run(begin, end);
      const auto difference = [&](const Tensor& a, const Tensor& b) {
        const Tensor d = cast(subtract(a.slice(0, begin, end), b), DType::f32);
        return sum(multiply(d, d)).item<float>();
      };
      EXPECT_EQ(difference(y, part), 0);
      EXPECT_EQ(difference(dx, dpart), 0);
    }
    EXPECT_GT(sum(multiply(cast(dx, DType::f32), cast(dx, DType::f32))).item<float>(), 0);
  }
}

// The gradient and the statistics of many rows: columns of x that repeat have the statistics of one period.
TEST_P(BatchNormDevice, SumsOfManyRows_EqualThoseOfOnePeriod) {
  constexpr std::int64_t channels = 8, period = 4099;
  const std::int64_t periods = GetParam().is_cuda() ? 1100 : 3;
  const auto run = [&](std::int64_t count) {
    const auto random = [&](std::uint32_t seed) {
      return add(random_tensor({1, period, channels}, DType::bf16, GetParam(), seed),
                 cast(random_tensor({count, 1, 1}, DType::f32, GetParam(), 9, 0, 0), DType::bf16))
          .reshape({count * period, channels});
    };
    auto p = parameters_of(channels, DType::f32, GetParam());
    Tensor x = random(1);
    for (Tensor* const leaf : {&x, &p.weight, &p.bias}) leaf->set_requires_grad();
    const Tensor y = batch_norm(x, p.weight, p.bias, p.running, {.activation = FusedActivation::relu});
    backward(y, random(2));
    std::vector<Tensor> results{x.grad().slice(0, 0, period), p.running.mean, p.running.variance};
    for (const Tensor& total : {p.weight.grad(), p.bias.grad()}) {
      std::vector<double> means = values_of(total);
      for (double& value : means) value /= static_cast<double>(count * period);
      results.push_back(tensor_of(means, total.shape(), DType::f64));
    }
    return results;
  };
  const std::vector<Tensor> many = run(periods), one = run(1);
  expect_values(many[0], values_of(one[0]), 1e-2);
  for (std::size_t i = 1; i < many.size(); ++i) expect_values(many[i], values_of(one[i]), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchNormDevice, testing::ValuesIn(test_devices()), device_name);

TEST(BatchNorm, AnyNumberOfThreads_SameBits) {
  const auto all = [](int threads) {
    const ThreadLimit limit(threads);
    auto p = parameters_of(24, DType::f32, cpu_device);
    Tensor x = random_tensor({3, 40, 41, 24}, DType::f32, cpu_device, 1).set_requires_grad();
    p.weight.set_requires_grad();
    const Tensor y = batch_norm(x, p.weight, p.bias, p.running, {.activation = FusedActivation::relu});
    backward(y, random_tensor(y.shape(), DType::f32, cpu_device, 7));
    std::vector<double> values = values_of(y);
    for (const Tensor& t : {x.grad(), p.weight.grad(), p.running.mean, p.running.variance})
      for (double value : values_of(t)) values.push_back(value);
    return values;
  };
  EXPECT_EQ(all(1), all(2));
}

TEST(BatchNorm, InvalidArguments_ThrowErrorThatNamesThem) {
  const auto of = [](const Shape& shape, DType dtype = DType::f32) {
    return random_tensor(shape, dtype, cpu_device, 1);
  };
  const auto error = [&](const Tensor& x, const Tensor& weight, const Tensor& residual = {}) {
    BatchNormStatistics running{of({3}), of({3})};
    return error_text([&] { batch_norm(x, weight, of({3}), running, {}, residual); });
  };
  EXPECT_EQ(error(of({3}), of({3})), "[batch_norm] expected x (…, channels) of at least two axes, got [3]");
  EXPECT_EQ(error(of({2, 3}), of({4})), "[batch_norm] expected weight (3) of f32, got [4] of f32");
  EXPECT_EQ(error(of({2, 3}, DType::f64), of({3})),
            "[batch_norm] expected weight (3) of f64, got [3] of f32");
  EXPECT_EQ(error(of({1, 1, 1, 3}), of({3})),
            "[batch_norm] expected more than one value per channel in training, got x [1, 1, 1, 3]");
  EXPECT_EQ(error(of({2, 3}), of({3}), of({3, 3})),
            "[batch_norm] expected a residual of shape [2, 3], got [3, 3]");
  EXPECT_EQ(error(of({2, 3}, DType::i32), of({3})), "[batch_norm] expected a floating dtype, got i32");
  EXPECT_EQ(error(of({2, 3}), Tensor()), "[batch_norm] expected a tensor, got an undefined one");
  const auto ghost_error = [&](const Tensor& x) {
    BatchNormStatistics running{of({3}), of({3})};
    return error_text([&] { batch_norm(x, of({3}), of({3}), running, {.ghost_batch_rows = 2}); });
  };
  EXPECT_EQ(ghost_error(of({5, 3})),
            "[batch_norm] expected more than one value per channel in training, got x [5, 3]");
  EXPECT_EQ(ghost_error(of({6, 3}).set_requires_grad()),
            "[batch_norm] expected one batch where gradients are required, got 3 ghost batches");
}

}  // namespace
}  // namespace tandem
