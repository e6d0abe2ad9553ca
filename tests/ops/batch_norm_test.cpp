#include "tandem/ops/batch_norm.h"

#include "tandem/core/parallel.h"
#include "tandem/tensor/tape.h"
#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

class BatchNormTest : public OpTest {};

// The inputs of a case come in the order of their names: weight, x, bias and the residual where there is one.
// Cases of two values a channel, or far from zero, lose digits in f32 whoever computes them.
TEST_P(BatchNormTest, EqualsPyTorchAndMovesTheRunningStatistics) {
  expect_golden(
      "batch_norm", dtype(), device(), 10 * tolerance(),
      [&](const golden::Case& one, const std::vector<Tensor>& in) {
        const Tensor mean = golden_tensor(one, "running_mean", dtype(), device());
        const Tensor variance = golden_tensor(one, "running_variance", dtype(), device());
        Tensor y = batch_norm(in[1], in[0], in[2], mean, variance,
                              {.training = one.params.at("training"),
                               .momentum = one.params.at("momentum"),
                               .epsilon = one.params.at("epsilon"),
                               .relu = one.params.at("relu")},
                              in.size() > 3 ? in[3] : Tensor());
        expect_values(mean, one.array("moved_mean").values<double>(), tolerance());
        expect_values(variance, one.array("moved_variance").values<double>(), tolerance());
        return y;
      },
      "conv");
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchNormTest, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

struct Parameters {
  Tensor weight, bias, mean, variance;
};

Parameters parameters_of(std::int64_t channels, DType dtype, Device device) {
  return {random_tensor({channels}, dtype, device, 2, 0.5, 1.5), random_tensor({channels}, dtype, device, 3),
          random_tensor({channels}, dtype, device, 4), random_tensor({channels}, dtype, device, 5, 0.5, 2)};
}

class BatchNormDevice : public testing::TestWithParam<Device> {};

TEST_P(BatchNormDevice, GradientsEqualCentralDifferences) {
  for (const bool training : {true, false}) {
    const Tensor x = random_tensor({2, 3, 2, 3}, DType::f64, GetParam(), 1);
    const Tensor residual = random_tensor(x.shape(), DType::f64, GetParam(), 6);
    const auto p = parameters_of(3, DType::f64, GetParam());
    const auto f = [&](const std::vector<Tensor>& in, bool relu) {
      return batch_norm(in[0], in[1], in[2], p.mean.clone(), p.variance.clone(),
                        {.training = training, .relu = relu}, in[3]);
    };
    expect_gradients([&](const auto& in) { return f(in, false); }, {x, p.weight, p.bias, residual}, 1e-5);
    expect_gradients([&](const auto& in) { return f(in, true); }, {x, p.weight, p.bias, residual}, 1e-5);
  }
}

// Far from zero, with few or many rows: the mean must not swallow the variance.
TEST_P(BatchNormDevice, IsAccurateFarFromZeroInF32) {
  for (const std::int64_t rows : {5, 5000}) {
    const Tensor x = random_tensor({rows, 70}, DType::f32, GetParam(), 1, 999, 1001);
    const auto p = parameters_of(70, DType::f32, GetParam());
    const auto exact = parameters_of(70, DType::f64, GetParam());
    const Tensor wide = tensor_of(values_of(x), x.shape(), DType::f64, GetParam());
    const Tensor weight = tensor_of(values_of(p.weight), {70}, DType::f64, GetParam());
    const Tensor bias = tensor_of(values_of(p.bias), {70}, DType::f64, GetParam());
    const Tensor expected = batch_norm(wide, weight, bias, exact.mean, exact.variance, {});
    expect_values(batch_norm(x, p.weight, p.bias, p.mean, p.variance, {}), values_of(expected), 2e-4);
    expect_values(p.variance, values_of(exact.variance), 1e-5);
  }
}

TEST_P(BatchNormDevice, ComputesInF32ForBf16) {
  const auto p = parameters_of(16, DType::f32, GetParam()), q = parameters_of(16, DType::f32, GetParam());
  Tensor x = random_tensor({4, 3, 3, 16}, DType::bf16, GetParam(), 1).set_requires_grad();
  Tensor wide = tensor_of(values_of(x), x.shape(), DType::f32, GetParam()).set_requires_grad();
  const Tensor dy = random_tensor(x.shape(), DType::bf16, GetParam(), 9);
  const Tensor y = batch_norm(x, p.weight, p.bias, p.mean, p.variance, {});
  const Tensor expected = batch_norm(wide, q.weight, q.bias, q.mean, q.variance, {});
  EXPECT_EQ(y.dtype(), DType::bf16);
  expect_values(y, values_of(expected), 1e-2);
  expect_values(p.mean, values_of(q.mean), 1e-5);
  backward(y, dy);
  backward(expected, tensor_of(values_of(dy), x.shape(), DType::f32, GetParam()));
  expect_values(x.grad(), values_of(wide.grad()), 1e-2);
}

TEST_P(BatchNormDevice, GradientsAreComputedOnlyWhereWanted) {
  const Tensor fixed = random_tensor({4, 3}, DType::f32, GetParam(), 1);
  for (const bool training : {true, false})
    for (const bool relu : {true, false})
      for (int wanted = 0; wanted < 4; ++wanted) {
        auto p = parameters_of(3, DType::f32, GetParam());
        Tensor x = fixed.clone(), residual = fixed.clone();
        Tensor* const leaves[] = {&x, &p.weight, &p.bias, &residual};
        leaves[wanted]->set_requires_grad();
        const BatchNormOptions options{.training = training, .relu = relu};
        backward(sum(batch_norm(x, p.weight, p.bias, p.mean, p.variance, options, residual)));
        for (int k = 0; k < 4; ++k) EXPECT_EQ(leaves[k]->grad().defined(), k == wanted);
        const NoGrad no_grad;
        EXPECT_FALSE(batch_norm(x, p.weight, p.bias, p.mean, p.variance, options, residual).requires_grad());
      }
}

// Two images a batch, and one that is left: as three calls, statistics included.
TEST_P(BatchNormDevice, BatchesSideBySideAreBatchesOneAfterTheOther) {
  for (const std::int64_t side : {3, 40}) {
    const std::int64_t channels = 20;
    const Tensor x = random_tensor({5, side, side, channels}, DType::f32, GetParam(), 1, -3, 5);
    const Tensor residual = random_tensor(x.shape(), DType::f32, GetParam(), 2);
    const auto p = parameters_of(channels, DType::f32, GetParam()),
               q = parameters_of(channels, DType::f32, GetParam());
    const Tensor counted = Tensor::from(std::vector<std::int64_t>{7}, {1}, GetParam());
    const Tensor y = batch_norm(x, p.weight, p.bias, p.mean, p.variance,
                                {.relu = true, .batch_rows = 2 * side * side}, residual, counted);
    std::vector<double> expected;
    for (std::int64_t first = 0; first < 5; first += 2) {
      const std::int64_t end = std::min<std::int64_t>(first + 2, 5);
      const Tensor part = batch_norm(x.slice(0, first, end), q.weight, q.bias, q.mean, q.variance,
                                     {.relu = true}, residual.slice(0, first, end));
      for (const double value : values_of(part)) expected.push_back(value);
    }
    expect_values(y, expected, 1e-5);
    expect_values(p.mean, values_of(q.mean), 1e-5);
    expect_values(p.variance, values_of(q.variance), 1e-5);
    EXPECT_EQ(counted.item<std::int64_t>(), 10);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchNormDevice, testing::ValuesIn(test_devices()), device_name);

TEST(BatchNorm, IsTheSameBitsForAnyNumberOfThreads) {
  const auto all = [](int threads) {
    const ThreadLimit limit(threads);
    auto p = parameters_of(24, DType::f32, cpu_device);
    Tensor x = random_tensor({3, 40, 41, 24}, DType::f32, cpu_device, 1).set_requires_grad();
    p.weight.set_requires_grad();
    const Tensor y = batch_norm(x, p.weight, p.bias, p.mean, p.variance, {.relu = true});
    backward(y, random_tensor(y.shape(), DType::f32, cpu_device, 7));
    std::vector<double> values = values_of(y);
    for (const Tensor& t : {x.grad(), p.weight.grad(), p.mean, p.variance})
      for (double value : values_of(t)) values.push_back(value);
    return values;
  };
  EXPECT_EQ(all(1), all(2));
}

TEST(BatchNorm, NamesWhatDoesNotFit) {
  const auto of = [](const Shape& shape, DType dtype = DType::f32) {
    return random_tensor(shape, dtype, cpu_device, 1);
  };
  const auto error = [&](const Tensor& x, const Tensor& weight, const Tensor& residual = {}) {
    return error_text([&] { batch_norm(x, weight, of({3}), of({3}), of({3}), {}, residual); });
  };
  EXPECT_EQ(error(of({3}), of({3})), "[batch_norm] expected x (…, channels) of at least two axes, got [3]");
  EXPECT_EQ(error(of({2, 3}), of({4})), "[batch_norm] expected weight (3) of f32, got [4] of f32");
  EXPECT_EQ(error(of({2, 3}, DType::f64), of({3})),
            "[batch_norm] expected weight (3) of f64, got [3] of f32");
  EXPECT_EQ(error(of({1, 1, 1, 3}), of({3})),
            "[batch_norm] expected more than one value a channel in training, got x [1, 1, 1, 3]");
  EXPECT_EQ(error(of({2, 3}), of({3}), of({3, 3})),
            "[batch_norm] expected a residual of shape [2, 3], got [3, 3]");
  EXPECT_EQ(error(of({2, 3}, DType::i32), of({3})), "[batch_norm] expected a floating dtype, got i32");
  EXPECT_EQ(error(of({2, 3}), Tensor()), "[batch_norm] expected a tensor, got an empty handle");
  const auto side_by_side = [&](Tensor x) {
    return error_text([&] { batch_norm(x, of({3}), of({3}), of({3}), of({3}), {.batch_rows = 2}); });
  };
  EXPECT_EQ(side_by_side(of({5, 3})),
            "[batch_norm] expected more than one value a channel in training, got x [5, 3]");
  EXPECT_EQ(side_by_side(of({6, 3}).set_requires_grad()),
            "[batch_norm] 3 batches side by side have no gradients");
}

}  // namespace
}  // namespace tandem
