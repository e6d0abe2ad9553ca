#include "tandem/ops/softmax.h"

#include <algorithm>
#include <array>
#include <limits>

#include "tandem/core/parallel.h"
#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

using Function = Tensor (*)(const Tensor&, int);

// Along the last axis.
std::vector<double> softmax_of(const Tensor& x, bool logarithm) {
  std::vector<double> values = values_of(x);
  const std::size_t columns = static_cast<std::size_t>(x.size(-1));
  for (std::size_t start = 0; start < values.size(); start += columns) {
    const auto row = std::span(values).subspan(start, columns);
    const double row_max = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (double value : row) sum += std::exp(value - row_max);
    for (double& value : row)
      value = logarithm ? value - row_max - std::log(sum) : std::exp(value - row_max) / sum;
  }
  return values;
}

class SoftmaxTest : public OpTest {};

// Numbers of columns around the sizes of vectors, blocks, warps and what a warp keeps in registers.
TEST_P(SoftmaxTest, AnyShape_MatchesFormula) {
  std::uint32_t seed = 0;
  for (const auto& [rows, columns] : {std::array{1, 1},
                                      {3, 2},
                                      {5, 10},
                                      {7, 31},
                                      {4, 32},
                                      {3, 33},
                                      {9, 64},
                                      {2, 65},
                                      {3, 255},
                                      {2, 256},
                                      {3, 257},
                                      {70, 100},
                                      {2, 1000},
                                      {1, 1024},
                                      {3, 1025},
                                      {2, 5003}}) {
    SCOPED_TRACE(columns);
    const Tensor x = random_tensor({rows, columns}, dtype(), device(), ++seed, -5, 5);
    EXPECT_EQ(softmax(x).dtype(), dtype());
    expect_values(softmax(x), softmax_of(x, false), tolerance());
    expect_values(log_softmax(x), softmax_of(x, true), tolerance());
  }
}

TEST_P(SoftmaxTest, AnyAxisOrView_MatchesFormula) {
  const Tensor x = random_tensor({4, 5, 6}, dtype(), device(), 1);
  for (int axis = -3; axis < 3; ++axis) {
    const Tensor last = x.transpose(axis, -1).contiguous();
    const Tensor result = softmax(x, axis);
    EXPECT_EQ(result.shape(), x.shape());
    EXPECT_TRUE(result.is_contiguous());
    expect_values(result.transpose(axis, -1), softmax_of(last, false), tolerance());
    expect_values(log_softmax(x, axis).transpose(axis, -1), softmax_of(last, true), tolerance());
  }
  const Tensor view = x.slice(2, 1, 4);
  expect_values(softmax(view), softmax_of(view.clone(), false), tolerance());
}

TEST_P(SoftmaxTest, EmptyTensor_GivesEmptyResult) {
  EXPECT_EQ(softmax(random_tensor({3, 0}, dtype(), device(), 1)).shape(), (Shape{3, 0}));
  EXPECT_EQ(log_softmax(random_tensor({0, 4}, dtype(), device(), 1), 0).shape(), (Shape{0, 4}));
}

TEST_P(SoftmaxTest, LargeValuesInfinityAndNan_MatchLimits) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  expect_values(softmax(tensor_of({1e30, 1e30, -1e30}, {3}, dtype(), device())), {0.5, 0.5, 0}, tolerance());
  expect_values(softmax(tensor_of({-infinity, 0, 0, -infinity}, {4}, dtype(), device())), {0, 0.5, 0.5, 0},
                tolerance());
  expect_values(log_softmax(tensor_of({-infinity, 0}, {2}, dtype(), device())), {-infinity, 0}, tolerance());
  for (Function f : {Function(softmax), Function(log_softmax)}) {
    expect_values(f(tensor_of({-infinity, -infinity}, {2}, dtype(), device()), 0), {nan, nan}, 0);
    expect_values(f(tensor_of({nan, 1, 2, 3}, {2, 2}, dtype(), device()), 0).slice(1, 0, 1), {nan, nan}, 0);
    expect_values(f(tensor_of({infinity, 1}, {2}, dtype(), device()), 0).slice(0, 0, 1), {nan}, 0);
  }
}

TEST_P(SoftmaxTest, AnyThreadCount_GivesSameBits) {
  const Tensor x = random_tensor({65, 700}, dtype(), device(), 4);
  const auto threaded = values_of(softmax(x));
  const ThreadLimit one(1);
  EXPECT_EQ(values_of(softmax(x)), threaded);
}

TEST_P(SoftmaxTest, MatchesPyTorch) {
  for (const golden::Case& one : golden_cases("softmax"))
    if (dtype() != DType::bf16 || one.name.find("far") == std::string::npos)  // bf16 cannot hold those inputs
      expect_golden(one, {"x"}, dtype(), device(), tolerance(),
                    [&](const auto& in) { return softmax(in[0], one.params.at("axis")); });
  for (const golden::Case& one : golden_cases("log_softmax"))
    if (dtype() != DType::bf16 || one.name.find("far") == std::string::npos)
      expect_golden(one, {"x"}, dtype(), device(), tolerance(),
                    [&](const auto& in) { return log_softmax(in[0], one.params.at("axis")); });
}

INSTANTIATE_TEST_SUITE_P(Devices, SoftmaxTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

class SoftmaxGradient : public testing::TestWithParam<Device> {};

TEST_P(SoftmaxGradient, MatchesCentralDifferences) {
  for (Function f : {Function(softmax), Function(log_softmax)})
    for (const auto& [shape, axis] : std::vector<std::pair<Shape, int>>{{{1}, 0},
                                                                        {{3, 5}, 1},
                                                                        {{3, 5}, 0},
                                                                        {{2, 3, 4}, 1},
                                                                        {{2, 33}, -1},
                                                                        {{1, 70}, -1},
                                                                        {{1, 300}, -1}})
      expect_gradients([f, axis = axis](const auto& in) { return f(in[0], axis); },
                       {random_tensor(shape, DType::f64, GetParam(), 3)});
}

// Longer than a warp keeps in registers.
TEST_P(SoftmaxGradient, LongRow_MatchesFormula) {
  for (const bool logarithm : {false, true}) {
    Tensor x = random_tensor({2, 3001}, DType::f64, GetParam(), 3).set_requires_grad();
    const Tensor g = random_tensor({2, 3001}, DType::f64, GetParam(), 4);
    backward(logarithm ? log_softmax(x) : softmax(x), g);
    const auto y = softmax_of(x.detach(), false), upstream = values_of(g);
    std::vector<double> expected;
    for (std::size_t row = 0; row < 2; ++row) {
      double sum = 0;
      for (std::size_t i = row * 3001; i < (row + 1) * 3001; ++i) sum += upstream[i] * (logarithm ? 1 : y[i]);
      for (std::size_t i = row * 3001; i < (row + 1) * 3001; ++i)
        expected.push_back(logarithm ? upstream[i] - y[i] * sum : y[i] * (upstream[i] - sum));
    }
    expect_values(x.grad(), expected, 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, SoftmaxGradient, testing::ValuesIn(test_devices()), device_name);

TEST(Softmax, BadInput_ErrorNamesOperationAndValues) {
  EXPECT_EQ(error_text([] { softmax(tensor_of({1}, {1}, DType::i32)); }),
            "[softmax] expected a floating dtype, got i32");
  EXPECT_EQ(error_text([] { log_softmax(tensor_of({1}, {}, DType::f32)); }),
            "[log_softmax] expected at least one axis, got shape []");
  EXPECT_NE(error_text([] { log_softmax(tensor_of({1}, {1}, DType::f32), 1); }).find("[log_softmax]"),
            std::string::npos);
  EXPECT_EQ(error_text([] { softmax(Tensor()); }), "[softmax] expected a tensor, got an undefined one");
}

}  // namespace
}  // namespace tandem
