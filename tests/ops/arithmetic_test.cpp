#include "tandem/ops/arithmetic.h"

#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

using Function = Tensor (*)(const Tensor&, const Tensor&);
constexpr Function tensor_add = add, tensor_subtract = subtract, tensor_multiply = multiply,
                   tensor_divide = divide;

class ArithmeticTest : public OpTest {};

// Shapes: scalar, empty, one, around vector and warp widths, several blocks, broadcasts both ways.
const std::vector<std::pair<Shape, Shape>> shape_pairs = {
    {{}, {}},       {{0}, {0}},          {{1}, {1}},           {{3}, {3}},
    {{31}, {31}},   {{33}, {1}},         {{1}, {33}},          {{17, 5}, {17, 5}},
    {{17, 5}, {5}}, {{17, 5}, {17, 1}},  {{4, 1}, {1, 7}},     {{2, 3, 4}, {3, 1}},
    {{257}, {257}}, {{1031, 7}, {1, 7}}, {{100003}, {100003}}, {{2, 0, 3}, {1, 3}}};

TEST_P(ArithmeticTest, AnyShape_MatchesFormula) {
  int seed = 0;
  for (const auto& [shape_a, shape_b] : shape_pairs) {
    const Tensor a = random_tensor(shape_a, dtype(), device(), ++seed, 1, 9);
    const Tensor b = random_tensor(shape_b, dtype(), device(), ++seed, 1, 5);
    const Shape shape = broadcast_shapes(shape_a, shape_b, "test");
    const auto wide_a = values_of(a.broadcast_view(shape)), wide_b = values_of(b.broadcast_view(shape));
    const auto expect_result = [&](Function f, auto formula) {
      std::vector<double> expected;
      for (std::size_t i = 0; i < wide_a.size(); ++i) expected.push_back(formula(wide_a[i], wide_b[i]));
      const Tensor actual = f(a, b);
      EXPECT_EQ(actual.shape(), shape);
      EXPECT_EQ(actual.dtype(), dtype());
      EXPECT_EQ(actual.device(), device());
      expect_values(actual, expected, tolerance());
    };
    const bool is_integer = !is_floating(dtype());
    expect_result(tensor_add, [](double x, double y) { return x + y; });
    expect_result(tensor_multiply, [](double x, double y) { return x * y; });
    expect_result(tensor_divide,
                  [is_integer](double x, double y) { return is_integer ? std::trunc(x / y) : x / y; });
    if (dtype() != DType::u8) expect_result(tensor_subtract, [](double x, double y) { return x - y; });
  }
}

TEST_P(ArithmeticTest, StridedOperands_MatchContiguous) {
  const Tensor a = random_tensor({6, 5}, dtype(), device(), 1, 1, 9);
  const Tensor b = random_tensor({5, 6}, dtype(), device(), 2, 1, 9);
  expect_values(add(a.transpose(), b), values_of(add(a.transpose().contiguous(), b)), 0);
  const Tensor part = a.slice(1, 1, 4);
  expect_values(multiply(part, part), values_of(multiply(part.clone(), part.clone())), 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, ArithmeticTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16, DType::u8,
                                                     DType::i32, DType::i64})),
                         op_case_name);

class ArithmeticGolden : public OpTest {};

TEST_P(ArithmeticGolden, MatchesPyTorch) {
  for (const auto& [name, function] : std::vector<std::pair<std::string, Function>>{
           {"add", tensor_add}, {"sub", tensor_subtract}, {"mul", tensor_multiply}, {"div", tensor_divide}})
    expect_golden(name, dtype(), device(), tolerance(),
                  [&](const golden::Case&, const std::vector<Tensor>& in) { return function(in[0], in[1]); });
}

INSTANTIATE_TEST_SUITE_P(Devices, ArithmeticGolden, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

class ArithmeticGradient : public testing::TestWithParam<Device> {};

TEST_P(ArithmeticGradient, MatchesCentralDifferences) {
  for (const auto& [shape_a, shape_b] : std::vector<std::pair<Shape, Shape>>{
           {{3, 4}, {3, 4}}, {{3, 4}, {4}}, {{3, 1}, {1, 4}}, {{}, {2, 2}}, {{2, 3, 2}, {3, 1}}}) {
    const std::vector<Tensor> inputs = {random_tensor(shape_a, DType::f64, GetParam(), 1, 0.5, 2),
                                        random_tensor(shape_b, DType::f64, GetParam(), 2, 0.5, 2)};
    for (Function f : {tensor_add, tensor_subtract, tensor_multiply, tensor_divide})
      expect_gradients([f](const auto& in) { return f(in[0], in[1]); }, inputs);
  }
}

TEST_P(ArithmeticGradient, Scalars_MatchCentralDifferences) {
  using Scalar = Tensor (*)(const Tensor&);
  for (const Scalar f :
       {Scalar([](const Tensor& a) { return a + 2; }), Scalar([](const Tensor& a) { return 2 + a; }),
        Scalar([](const Tensor& a) { return a - 2; }), Scalar([](const Tensor& a) { return 2 - a; }),
        Scalar([](const Tensor& a) { return a * 3; }), Scalar([](const Tensor& a) { return 3 * a; }),
        Scalar([](const Tensor& a) { return a / 4; }), Scalar([](const Tensor& a) { return 4 / a; }),
        Scalar([](const Tensor& a) { return -a; })})
    expect_gradients([f](const auto& in) { return f(in[0]); },
                     {random_tensor({3, 4}, DType::f64, GetParam(), 1, 0.5, 2)});
}

TEST_P(ArithmeticGradient, OneOperandRequiresGrad_OtherGetsNone) {
  Tensor a = random_tensor({3}, DType::f64, GetParam(), 1).set_requires_grad();
  const Tensor b = random_tensor({3}, DType::f64, GetParam(), 2);
  backward(sum(multiply(a, b)));
  expect_values(a.grad(), values_of(b), 0);
  EXPECT_FALSE(b.grad().defined());
}

TEST_P(ArithmeticGradient, AccumulatesOverUsesAndBackwardCalls) {
  Tensor a = tensor_of({3}, {1}, DType::f64, GetParam()).set_requires_grad();
  backward(sum(add(multiply(a, a), a)));  // 2a + 1
  EXPECT_EQ(a.grad().item<double>(), 7);
  backward(sum(a));
  EXPECT_EQ(a.grad().item<double>(), 8);
}

INSTANTIATE_TEST_SUITE_P(Devices, ArithmeticGradient, testing::ValuesIn(test_devices()), device_name);

TEST(Arithmetic, ScalarOperators_MatchFormula) {
  const Tensor a({1., 2., -4.});
  expect_values(a + 1, {2, 3, -3}, 0);
  expect_values(1 + a, {2, 3, -3}, 0);
  expect_values(a - 1, {0, 1, -5}, 0);
  expect_values(1 - a, {0, -1, 5}, 0);
  expect_values(a * 2, {2, 4, -8}, 0);
  expect_values(2 * a, {2, 4, -8}, 0);
  expect_values(a / 2, {0.5, 1, -2}, 0);
  expect_values(2 / a, {2, 1, -0.5}, 0);
  expect_values(-a, {-1, -2, 4}, 0);
  const Tensor counts({5, 7}, DType::i64);
  expect_values(1 - counts * 2, {-9, -13}, 0);
  EXPECT_EQ((counts / 2).dtype(), DType::i64);
  expect_values(counts / 2, {2, 3}, 0);
}

TEST(Arithmetic, ScalarWithFractionOnIntegers_Throws) {
  const Tensor counts({5, 7}, DType::i64);
  EXPECT_EQ(error_text([&] { counts * 0.5; }),
            "[multiply] expected a scalar without a fraction for a tensor of i64, got 0.5");
  EXPECT_EQ(error_text([&] { counts / 0; }), "[divide] expected integer divisors other than 0, got 0");
  EXPECT_EQ(error_text([] { Tensor() * 2; }), "[multiply] expected a tensor, got an undefined one");
}

TEST(Arithmetic, BadOperands_ErrorNamesOperationAndValues) {
  const Tensor a = random_tensor({2, 3}, DType::f32, cpu_device, 1),
               b = random_tensor({4}, DType::f32, cpu_device, 2);
  EXPECT_EQ(error_text([&] { add(a, b); }),
            "[add] expected shapes that broadcast together, got [2, 3] and [4]");
  const Tensor c = random_tensor({3}, DType::f64, cpu_device, 3);
  EXPECT_EQ(error_text([&] { multiply(a, c); }), "[multiply] expected tensors of one dtype, got f32 and f64");
  EXPECT_EQ(error_text([&] { add(a, Tensor()); }), "[add] expected a tensor, got an undefined one");
}

TEST(Arithmetic, IntegerDivisionByZero_Throws) {
  const Tensor a = tensor_of({6, 7}, {2}, DType::i32), zero = tensor_of({2, 0}, {2}, DType::i32);
  EXPECT_EQ(error_text([&] { divide(a, zero); }), "[divide] expected integer divisors other than 0, got 0");
}

}  // namespace
}  // namespace tandem
