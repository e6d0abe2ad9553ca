#include "tandem/ops/cross_entropy.h"

#include <algorithm>
#include <array>
#include <limits>

#include "tandem/core/parallel.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/fill.h"
#include "tandem/tensor/tape.h"
#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Expected {
  double loss = 0;
  std::vector<double> gradient;
};

// The definition, row by row in f64.
Expected by_definition(const Tensor& logits, const Tensor& labels, double smoothing) {
  const std::vector<double> x = values_of(logits), y = values_of(labels);
  const auto rows = static_cast<std::size_t>(logits.size(0)), classes = x.size() / rows;
  Expected expected{.loss = 0, .gradient = std::vector<double>(x.size())};
  for (std::size_t row = 0; row < rows; ++row) {
    const double* from = x.data() + row * classes;
    const double row_max = *std::max_element(from, from + classes);
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(from[c] - row_max);
    for (std::size_t c = 0; c < classes; ++c) {
      const double log_p = from[c] - row_max - std::log(sum);
      const double target =
          smoothing / static_cast<double>(classes) + (static_cast<double>(c) == y[row] ? 1 - smoothing : 0);
      expected.loss -= target == 0 ? 0 : target * log_p / static_cast<double>(rows);
      expected.gradient[row * classes + c] = (std::exp(log_p) - target) / static_cast<double>(rows);
    }
  }
  return expected;
}

class CrossEntropyTest : public OpTest {};

// Numbers of classes around the sizes of vectors, blocks, warps and what a warp keeps in registers.
TEST_P(CrossEntropyTest, AnyShape_MatchesDefinition) {
  std::uint32_t seed = 0;
  for (const auto& [rows, classes] : {std::array{1, 1},
                                      {3, 2},
                                      {16, 10},
                                      {7, 31},
                                      {4, 32},
                                      {3, 33},
                                      {3, 255},
                                      {2, 256},
                                      {3, 257},
                                      {700, 10},
                                      {2, 1024},
                                      {3, 1025},
                                      {2, 5003}})
    for (const double smoothing : {0.0, 0.1}) {
      SCOPED_TRACE(classes);
      Tensor x = random_tensor({rows, classes}, dtype(), device(), ++seed, -5, 5).set_requires_grad();
      const Tensor labels =
          random_tensor({rows}, seed % 3 == 0 ? DType::i32 : DType::i64, device(), seed, 0, classes);
      const Expected expected = by_definition(x, labels, smoothing);
      const Tensor loss = cross_entropy(x, labels, smoothing);
      EXPECT_EQ(loss.shape(), Shape());
      EXPECT_EQ(loss.dtype(), dtype());
      expect_values(loss, {expected.loss}, tolerance());
      backward(loss);
      expect_values(x.grad(), expected.gradient, tolerance());
      const NoGrad no_grad;
      expect_values(cross_entropy(x, labels, smoothing), {expected.loss}, tolerance());
    }
}

TEST_P(CrossEntropyTest, ViewsAndLargeLogits_MatchDefinition) {
  const Tensor wide = random_tensor({4, 6, 2}, dtype(), device(), 1);
  const Tensor view = wide.slice(2, 0, 1).reshape({4, 6});
  const Tensor transposed = random_tensor({6, 4}, dtype(), device(), 2).transpose();
  const Tensor labels = tensor_of({0, 9, 5, 9, 2, 9, 3, 9}, {4, 2}, DType::i64, device()).slice(1, 0, 1);
  for (const Tensor& x : {view, transposed})
    expect_values(cross_entropy(x, labels.reshape({4})), {by_definition(x, labels, 0).loss}, tolerance());
  const auto loss_of = [&](const std::vector<double>& row, std::int64_t label) {
    return cross_entropy(tensor_of(row, {1, 3}, dtype(), device()),
                         Tensor::from(std::vector<std::int64_t>{label}, {1}, device()));
  };
  expect_values(loss_of({1e30, -1e30, 1e30}, 0), {std::log(2.0)}, tolerance());
  expect_values(loss_of({-infinity, 0, -infinity}, 1), {0}, tolerance());
  expect_values(loss_of({-infinity, 0, 0}, 0), {infinity}, 0);
  expect_values(loss_of({nan, 0, 0}, 1), {nan}, 0);
  expect_values(loss_of({-infinity, -infinity, -infinity}, 1), {nan}, 0);
}

TEST_P(CrossEntropyTest, LabelOutOfRange_ThrowsOnCpuAndGivesNanOnCuda) {
  for (const double bad : {-1.0, 3.0}) {
    Tensor x = tensor_of({1, 2, 3, 4, 5, 6}, {2, 3}, dtype(), device()).set_requires_grad();
    const Tensor labels = tensor_of({1, bad}, {2}, DType::i32, device());
    if (!device().is_cuda()) {
      EXPECT_EQ(error_text([&] { cross_entropy(x, labels); }),
                "[cross_entropy] expected labels from 0 to 2, got " + std::to_string(static_cast<int>(bad)) +
                    " at position 1");
      continue;
    }
    const Tensor loss = cross_entropy(x, labels);
    expect_values(loss, {nan}, 0);
    backward(loss);
    expect_values(x.grad().slice(0, 1, 2), {nan, nan, nan}, 0);
    EXPECT_FALSE(std::isnan(values_of(x.grad())[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, CrossEntropyTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

class CrossEntropyGradient : public testing::TestWithParam<Device> {};

TEST_P(CrossEntropyGradient, MatchesCentralDifferences) {
  for (const double smoothing : {0.0, 0.2, 1.0})
    for (const auto& [rows, classes] : {std::array{1, 1}, {1, 5}, {4, 3}, {2, 33}, {1, 300}}) {
      const Tensor labels = random_tensor({rows}, DType::i64, GetParam(), 5, 0, classes);
      expect_gradients([&](const auto& in) { return cross_entropy(in[0], labels, smoothing); },
                       {random_tensor({rows, classes}, DType::f64, GetParam(), 3)});
    }
}

// Rows of both block sizes, a class of weight 0, and gammas on both sides of 1.
TEST_P(CrossEntropyGradient, WithClassWeightsAndFocalGamma_MatchesCentralDifferences) {
  for (const auto& [rows, classes] : {std::array{1, 2}, {4, 3}, {3, 33}, {2, 300}}) {
    const Tensor labels = random_tensor({rows}, DType::i64, GetParam(), 5, 0, classes);
    Tensor weights = random_tensor({classes}, DType::f64, GetParam(), 6, 0.5, 2);
    if (classes == 3) weights = tensor_of({0, 1, 2}, {3}, DType::f64, GetParam());
    const Tensor x = random_tensor({rows, classes}, DType::f64, GetParam(), 3);
    for (const double smoothing : {0.0, 0.2})
      expect_gradients(
          [&](const auto& in) {
            return cross_entropy(in[0], labels, {.label_smoothing = smoothing, .class_weights = weights});
          },
          {x});
    for (const double gamma : {0.5, 1.0, 2.0, 5.0}) {
      expect_gradients([&](const auto& in) { return cross_entropy(in[0], labels, {.focal_gamma = gamma}); },
                       {x});
      expect_gradients(
          [&](const auto& in) {
            return cross_entropy(in[0], labels, {.class_weights = weights, .focal_gamma = gamma});
          },
          {x});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, CrossEntropyGradient, testing::ValuesIn(test_devices()), device_name);

TEST_P(CrossEntropyTest, MatchesPyTorch) {
  int count = 0;
  for (const golden::Case& one : golden::load("training")) {
    if (one.params.at("op") != "cross_entropy") continue;
    SCOPED_TRACE(one.name);
    ++count;
    const golden::Array& logits = one.array("x");
    Tensor x = tensor_of(logits.values<double>(), Shape(std::span<const std::int64_t>(logits.shape)), dtype(),
                         device())
                   .set_requires_grad();
    const Tensor labels = Tensor::from(one.array("labels").values<std::int64_t>(), {x.size(0)}, device());
    const Tensor loss = cross_entropy(x, labels, one.params.at("label_smoothing"));
    expect_values(loss, one.array("expected").values<double>(), tolerance());
    backward(loss);
    expect_values(x.grad(), one.array("grad_x").values<double>(), tolerance());
  }
  EXPECT_GE(count, 10);
}

TEST_P(CrossEntropyTest, LabelSmoothing_MatchesPyTorch) {
  const auto cases = golden_cases("cross_entropy", "conv");
  EXPECT_GE(cases.size(), 25U);
  for (const golden::Case& one : cases)
    expect_golden(one, {"logits"}, dtype(), device(), tolerance(), [&](const std::vector<Tensor>& in) {
      const Tensor labels =
          Tensor::from(one.array("labels").values<std::int64_t>(), {in[0].size(0)}, device());
      return cross_entropy(in[0], labels, one.params.at("smoothing"));
    });
}

// The loss of a mixture is the mixture of the losses, divided by the rows and not by the weights.
TEST_P(CrossEntropyTest, MixedLabelsWithClassWeights_MatchPyTorch) {
  const auto cases = golden_cases("mixed", "steps");
  EXPECT_EQ(cases.size(), 4U);
  for (const golden::Case& one : cases)
    expect_golden(one, {"x"}, dtype(), device(), tolerance(), [&](const std::vector<Tensor>& in) {
      const std::int64_t rows = in[0].size(0);
      const auto labels = [&](const char* key) {
        return Tensor::from(one.array(key).values<std::int64_t>(), {rows}, device());
      };
      const auto weights = one.array("class_weights").values<double>();
      const CrossEntropyOptions options{
          .label_smoothing = one.params.at("label_smoothing"),
          .class_weights = tensor_of(weights, {std::ssize(weights)}, DType::f64, device()),
          .total_weight = tensor_of({static_cast<double>(rows)}, {}, DType::f64, device())};
      const double share = one.params.at("share");
      return add(multiply(cross_entropy(in[0], labels("first"), options), share),
                 multiply(cross_entropy(in[0], labels("second"), options), 1 - share));
    });
}

TEST_P(CrossEntropyTest, ExtremeRows_GiveFiniteFocalLoss) {
  Tensor x = tensor_of({200, 0, 0, 200}, {2, 2}, dtype(), device()).set_requires_grad();
  const Tensor labels = tensor_of({0, 0}, {2}, DType::i64, device());  // certain and right, certain and wrong
  const Tensor loss = cross_entropy(x, labels, {.focal_gamma = 0.5});
  expect_values(loss, {100}, tolerance());
  backward(loss);
  expect_values(x.grad(), {0, 0, -0.5, 0.5}, tolerance());
}

TEST_P(CrossEntropyTest, TotalWeightOfZero_GivesZero) {
  Tensor x = tensor_of({1, 2, 3, 4}, {2, 2}, dtype(), device()).set_requires_grad();
  const Tensor loss = cross_entropy(x, tensor_of({0, 0}, {2}, DType::i32, device()),
                                    {.class_weights = tensor_of({0, 1}, {2}, DType::f32, device())});
  backward(loss);
  expect_values(loss, {0}, 0);
  expect_values(x.grad(), {0, 0, 0, 0}, 0);
}

TEST(CrossEntropy, BadOptions_AreErrors) {
  const Tensor x = random_tensor({2, 3}, DType::f32, cpu_device, 1), labels = zeros({2}, DType::i64);
  const auto error = [&](const CrossEntropyOptions& options) {
    return error_text([&] { cross_entropy(x, labels, options); });
  };
  const Tensor weights = full({3}, 1, DType::f32);
  EXPECT_EQ(error({.focal_gamma = -1}), "[cross_entropy] expected a finite focal gamma of 0 or more, got -1");
  EXPECT_EQ(error({.label_smoothing = 0.1, .focal_gamma = 2}),
            "[cross_entropy] expected label smoothing or a focal gamma, got 0.1 and 2");
  EXPECT_EQ(error({.class_weights = full({2}, 1, DType::f32)}),
            "[cross_entropy] expected 3 class weights of a floating dtype, got f32 [2]");
  EXPECT_EQ(error({.class_weights = zeros({3}, DType::i64)}),
            "[cross_entropy] expected 3 class weights of a floating dtype, got i64 [3]");
  EXPECT_EQ(error({.total_weight = full({}, 1, DType::f32)}),
            "[cross_entropy] expected class weights with a total weight, got none");
  EXPECT_EQ(error({.class_weights = weights, .total_weight = weights}),
            "[cross_entropy] expected a total weight of one element and a floating dtype, got f32 [3]");
}

TEST(CrossEntropy, AnyThreadCount_GivesSameBits) {
  const Tensor labels = random_tensor({3001}, DType::i64, cpu_device, 2, 0, 17);
  const auto loss_and_gradient = [&](int threads) {
    const ThreadLimit limit(threads);
    Tensor x = random_tensor({3001, 17}, DType::f32, cpu_device, 1).set_requires_grad();
    const Tensor loss = cross_entropy(x, labels, 0.1);
    backward(loss);
    std::vector<double> all = values_of(x.grad());
    all.push_back(loss.item<float>());
    return all;
  };
  EXPECT_EQ(loss_and_gradient(1), loss_and_gradient(2));
}

TEST(CrossEntropy, BadInput_ErrorNamesOperationAndValues) {
  const auto of = [](const Shape& shape, DType dtype) {
    return random_tensor(shape, dtype, cpu_device, 1, 0, 1);
  };
  const Tensor x = of({2, 3}, DType::f32), labels = of({2}, DType::i64);
  EXPECT_EQ(error_text([&] {
              cross_entropy(of({2, 3}, DType::i32), labels);
            }),
            "[cross_entropy] expected logits of a floating dtype, got i32");
  EXPECT_EQ(error_text([&] { cross_entropy(x, of({2}, DType::f32)); }),
            "[cross_entropy] expected labels of i32 or i64, got f32");
  EXPECT_EQ(error_text([&] { cross_entropy(x, of({3}, DType::i64)); }),
            "[cross_entropy] expected logits (n, classes) and labels (n), got [2, 3] and [3]");
  EXPECT_EQ(error_text([&] {
              cross_entropy(of({0, 3}, DType::f32), of({0}, DType::i64));
            }),
            "[cross_entropy] expected at least one row and one class, got logits [0, 3]");
  EXPECT_EQ(error_text([&] { cross_entropy(x, labels, 1.5); }),
            "[cross_entropy] expected a label smoothing from 0 to 1, got 1.5");
  EXPECT_EQ(error_text([&] { cross_entropy(Tensor(), labels); }),
            "[cross_entropy] expected a tensor, got an undefined one");
}

}  // namespace
}  // namespace tandem
