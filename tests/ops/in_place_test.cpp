// In-place arithmetic: A += B and its siblings.
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/fill.h"
#include "tandem/tensor/tape.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

class InPlace : public OpTest {};

TEST_P(InPlace, AnyShape_MatchesTheOperatorAndKeepsTheMemory) {
  for (const auto& [shape_a, shape_b] : std::vector<std::pair<Shape, Shape>>{{{}, {}},
                                                                             {{0}, {0}},
                                                                             {{33}, {33}},
                                                                             {{33}, {1}},
                                                                             {{17, 5}, {5}},
                                                                             {{17, 5}, {17, 1}},
                                                                             {{2, 3, 4}, {3, 1}},
                                                                             {{100003}, {100003}},
                                                                             {{1031, 7}, {}}}) {
    const Tensor start = random_tensor(shape_a, dtype(), device(), 1, 1, 9);
    const Tensor b = random_tensor(shape_b, dtype(), device(), 2, 1, 5);
    const auto expect_result = [&](auto in_place, const Tensor& expected) {
      Tensor a = start.clone();
      const Tensor handle = a;
      EXPECT_EQ(&in_place(a), &a);
      EXPECT_EQ(a.bytes(), handle.bytes());
      EXPECT_EQ(values_of(handle), values_of(expected));
    };
    expect_result([&](Tensor& a) -> Tensor& { return a += b; }, start + b);
    expect_result([&](Tensor& a) -> Tensor& { return a -= b; }, start - b);
    expect_result([&](Tensor& a) -> Tensor& { return a *= b; }, start* b);
    expect_result([&](Tensor& a) -> Tensor& { return a /= b; }, start / b);
    expect_result([&](Tensor& a) -> Tensor& { return a += 2; }, start + 2);
    expect_result([&](Tensor& a) -> Tensor& { return a -= 1; }, start - 1);
    expect_result([&](Tensor& a) -> Tensor& { return a *= 3; }, start * 3);
    expect_result([&](Tensor& a) -> Tensor& { return a /= 2; }, start / 2);
  }
}

TEST_P(InPlace, Views_WriteIntoTheWhole) {
  Tensor x = tensor_of({1, 2, 3, 4, 5, 6}, {2, 3}, dtype(), device());
  x[0] += 10;
  x.slice(1, 1, 2) *= 2;
  x.transpose()[2] -= x[1][0];
  expect_values(x, {11, 24, 9, 4, 10, 2}, 0);
}

TEST_P(InPlace, OverlappingOperand_IsReadBeforeItIsWritten) {
  Tensor x = tensor_of({1, 2, 3, 4, 5, 6}, {2, 3}, dtype(), device());
  x -= x[0];  // the first row is also the operand of the second
  expect_values(x, {0, 0, 0, 3, 3, 3}, 0);
  Tensor y = tensor_of({1, 2, 3, 4}, {2, 2}, dtype(), device());
  y += y.transpose();
  expect_values(y, {2, 5, 5, 8}, 0);
  y += y;
  expect_values(y, {4, 10, 10, 16}, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Devices, InPlace,
    testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16, DType::i32, DType::i64})), op_case_name);

TEST(InPlaceGradients, OutsideNoGrad_Throws) {
  Tensor w = ones({2}).set_requires_grad(), x = ones({2});
  const std::string text = error_text([&] { w += x; });
  EXPECT_EQ(text,
            "[+=] expected tensors that require no gradient, or a NoGrad scope: in-place operations are not "
            "recorded");
  EXPECT_EQ(error_text([&] { x *= w; }), "[*=" + text.substr(3));
  EXPECT_EQ(error_text([&] { w -= 1; }), "[-=" + text.substr(3));
  expect_values(w, {1, 1}, 0);
  {
    const NoGrad no_grad;
    w -= x * 0.25;
  }
  expect_values(w, {0.75, 0.75}, 0);
  EXPECT_TRUE(w.requires_grad());
  sum(w * x).backward();
  expect_values(w.grad(), {1, 1}, 0);
}

TEST(InPlaceErrors, BadOperands_NameOperationAndValues) {
  Tensor a = ones({2, 3});
  EXPECT_EQ(error_text([&] {
              a += ones({2, 2, 3});
            }),
            "[+=] expected an operand that broadcasts to [2, 3], got [2, 2, 3]");
  EXPECT_EQ(error_text([&] { a -= ones({4}); }),
            "[-=] expected shapes that broadcast together, got [2, 3] and [4]");
  EXPECT_EQ(error_text([&] { a *= ones({3}, DType::f64); }),
            "[*=] expected tensors of one dtype, got f32 and f64");
  EXPECT_EQ(error_text([&] { a += Tensor(); }), "[+=] expected a tensor, got an undefined one");
  Tensor none, repeated = ones({1, 3}).broadcast_view({2, 3}), counts = ones({2}, DType::i32);
  EXPECT_EQ(error_text([&] { none += a; }), "[+=] expected a tensor, got an undefined one");
  EXPECT_EQ(error_text([&] { repeated += a; }),
            "[+=] expected a tensor whose elements have their own memory, got a broadcast view");
  EXPECT_EQ(error_text([&] { counts *= 0.5; }),
            "[*=] expected a scalar without a fraction for a tensor of i32, got 0.5");
  EXPECT_EQ(error_text([&] { counts /= 0; }), "[divide] expected integer divisors other than 0, got 0");
}

}  // namespace
}  // namespace tandem
