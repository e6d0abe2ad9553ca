#include "tandem/ops/compare.h"

#include <limits>

#include "tests/ops/op_test.h"

namespace tandem {
namespace {

using Function = Tensor (*)(const Tensor&, const Tensor&);
struct Relation {
  Function function;
  bool (*holds)(double, double);
};

const std::vector<Relation> relations = {{equal, [](double a, double b) { return a == b; }},
                                         {not_equal, [](double a, double b) { return a != b; }},
                                         {less, [](double a, double b) { return a < b; }},
                                         {less_equal, [](double a, double b) { return a <= b; }},
                                         {greater, [](double a, double b) { return a > b; }},
                                         {greater_equal, [](double a, double b) { return a >= b; }}};

class CompareTest : public OpTest {};

TEST_P(CompareTest, AnyShape_MatchesRelation) {
  std::uint32_t seed = 0;
  for (const auto& [shape_a, shape_b] : std::vector<std::pair<Shape, Shape>>{{{}, {}},
                                                                             {{0}, {1}},
                                                                             {{1}, {33}},
                                                                             {{31}, {31}},
                                                                             {{17, 5}, {5}},
                                                                             {{4, 1}, {1, 7}},
                                                                             {{1031, 7}, {1, 7}},
                                                                             {{70001}, {70001}}}) {
    // Few distinct values, so that equality happens.
    std::vector<double> values[2];
    const Shape shapes[2] = {shape_a, shape_b};
    std::mt19937 generator(++seed);
    for (int k = 0; k < 2; ++k)
      for (std::int64_t i = 0; i < shapes[k].numel(); ++i)
        values[k].push_back(static_cast<double>(generator() % 4));
    const Tensor a = tensor_of(values[0], shape_a, dtype(), device());
    const Tensor b = tensor_of(values[1], shape_b, dtype(), device());
    const Shape shape = broadcast_shapes(shape_a, shape_b, "test");
    const auto wide_a = values_of(a.broadcast_view(shape)), wide_b = values_of(b.broadcast_view(shape));
    for (const Relation& relation : relations) {
      std::vector<double> expected;
      for (std::size_t i = 0; i < wide_a.size(); ++i)
        expected.push_back(relation.holds(wide_a[i], wide_b[i]) ? 1 : 0);
      const Tensor actual = relation.function(a, b);
      EXPECT_EQ(actual.dtype(), DType::u8);
      EXPECT_EQ(actual.device(), device());
      EXPECT_EQ(actual.shape(), shape);
      expect_values(actual, expected, 0);
    }
  }
}

TEST_P(CompareTest, StridedOperands_MatchContiguous) {
  const Tensor a = random_tensor({6, 5}, dtype(), device(), 1, 0, 3);
  const Tensor b = random_tensor({5, 6}, dtype(), device(), 2, 0, 3);
  expect_values(less(a.transpose(), b), values_of(less(a.transpose().clone(), b)), 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, CompareTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16, DType::u8,
                                                     DType::i32, DType::i64})),
                         op_case_name);

class CompareFloats : public OpTest {};

TEST_P(CompareFloats, NanAndInfinity_MatchNumPy) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const std::vector<double> left = {nan, nan, 1, inf, -inf, -0.0, inf}, right = {nan, 1, nan, inf, inf, 0, 1};
  const Tensor a = tensor_of(left, {7}, dtype(), device()), b = tensor_of(right, {7}, dtype(), device());
  for (const Relation& relation : relations) {
    std::vector<double> expected;
    for (std::size_t i = 0; i < left.size(); ++i)
      expected.push_back(relation.holds(left[i], right[i]) ? 1 : 0);
    expect_values(relation.function(a, b), expected, 0);
  }
}

TEST_P(CompareFloats, HasNoGradient) {
  const Tensor a = random_tensor({3}, dtype(), device(), 1).set_requires_grad();
  EXPECT_FALSE(less(a, a).requires_grad());
}

INSTANTIATE_TEST_SUITE_P(Devices, CompareFloats,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

TEST(Compare, DistinguishesLargeIntegers) {
  const std::int64_t big = std::int64_t{1} << 60;
  const Tensor a = Tensor::from(std::vector{big}, {1}), b = Tensor::from(std::vector{big + 1}, {1});
  EXPECT_EQ(equal(a, b).item<std::uint8_t>(), 0);
  EXPECT_EQ(less(a, b).item<std::uint8_t>(), 1);
}

TEST(Compare, IntegersOfDifferentTypes_CompareByValue) {
  const Tensor a = Tensor::from(std::vector<std::int32_t>{-1, 2, 3}, {3});
  const Tensor b = Tensor::from(std::vector<std::int64_t>{-1, (std::int64_t{1} << 32) + 2, 2}, {3});
  const Tensor c = Tensor::from(std::vector<std::uint8_t>{255, 2, 3}, {3});
  expect_values(equal(a, b), {1, 0, 0}, 0);
  expect_values(less(a, b), {0, 1, 0}, 0);
  expect_values(greater(b, a), {0, 1, 0}, 0);
  expect_values(equal(c, a), {0, 1, 1}, 0);
}

TEST(Compare, BadOperands_ErrorNamesOperationAndValues) {
  const Tensor a = random_tensor({2, 3}, DType::f32, cpu_device, 1),
               b = random_tensor({4}, DType::f32, cpu_device, 2);
  EXPECT_EQ(error_text([&] { less_equal(a, b); }),
            "[less_equal] expected shapes that broadcast together, got [2, 3] and [4]");
  EXPECT_EQ(error_text([&] { greater(a, random_tensor({3}, DType::i32, cpu_device, 3)); }),
            "[greater] expected tensors of one dtype, got f32 and i32");
  EXPECT_EQ(error_text([&] { equal(Tensor(), a); }), "[equal] expected a tensor, got an undefined one");
}

}  // namespace
}  // namespace tandem
