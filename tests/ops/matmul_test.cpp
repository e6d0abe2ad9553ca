#include "tandem/ops/matmul.h"

#include <algorithm>
#include <array>

#include "tandem/core/parallel.h"
#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

std::vector<double> product_of(const Tensor& a, const Tensor& b) {
  const std::int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  std::vector<std::int64_t> batch_a(a.shape().begin(), a.shape().end() - 2),
      batch_b(b.shape().begin(), b.shape().end() - 2);
  const Shape batches = broadcast_shapes(Shape(std::span<const std::int64_t>(batch_a)),
                                         Shape(std::span<const std::int64_t>(batch_b)), "test");
  std::vector<std::int64_t> wide_a(batches.begin(), batches.end()), wide_b = wide_a;
  wide_a.insert(wide_a.end(), {m, k});
  wide_b.insert(wide_b.end(), {k, n});
  const auto x = values_of(a.broadcast_view(Shape(std::span<const std::int64_t>(wide_a))));
  const auto y = values_of(b.broadcast_view(Shape(std::span<const std::int64_t>(wide_b))));
  std::vector<double> result(static_cast<std::size_t>(batches.numel() * m * n), 0);
  for (std::int64_t batch = 0; batch < batches.numel(); ++batch)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t p = 0; p < k; ++p)
        for (std::int64_t j = 0; j < n; ++j)
          result[static_cast<std::size_t>((batch * m + i) * n + j)] +=
              x[static_cast<std::size_t>((batch * m + i) * k + p)] *
              y[static_cast<std::size_t>((batch * k + p) * n + j)];
  return result;
}

class MatmulTest : public OpTest {
 protected:
  Tensor random(const Shape& shape, std::uint32_t seed) {
    return random_tensor(shape, dtype(), device(), seed, -1, 1);
  }
  void expect_product(const Tensor& a, const Tensor& b) {
    SCOPED_TRACE(a.shape().to_string() + " · " + b.shape().to_string());
    const Tensor c = matmul(a, b);
    EXPECT_EQ(c.dtype(), dtype());
    EXPECT_EQ(c.device(), device());
    EXPECT_TRUE(c.is_contiguous());
    expect_values(c, product_of(a, b), tolerance());
  }
};

TEST_P(MatmulTest, AnyShape_MatchesFormula) {
  for (const auto& [m, k, n] : {std::array{1, 1, 1},
                                {3, 4, 5},
                                {1, 300, 1},
                                {17, 1, 33},
                                {31, 32, 33},
                                {8, 16, 24},
                                {129, 65, 127},
                                {16, 784, 200},
                                {200, 16, 10},
                                {1, 257, 1031},
                                {1031, 257, 1},
                                {0, 3, 4},
                                {3, 4, 0}})
    expect_product(random({m, k}, 1), random({k, n}, 2));
}

TEST_P(MatmulTest, InnerSizeZero_GivesZeros) {
  expect_values(matmul(random({2, 0}, 1), random({0, 3}, 2)), {0, 0, 0, 0, 0, 0}, 0);
  EXPECT_EQ(matmul(random({2, 3, 0}, 1), random({0, 4}, 2)).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(matmul(random({0, 3, 2}, 1), random({2, 4}, 2)).shape(), (Shape{0, 3, 4}));
}

TEST_P(MatmulTest, Batches_MatchFormula) {
  expect_product(random({5, 3, 4}, 1), random({5, 4, 2}, 2));
  expect_product(random({3, 4}, 1), random({5, 4, 2}, 2));
  expect_product(random({5, 3, 4}, 1), random({4, 2}, 2));
  expect_product(random({2, 1, 3, 4}, 1), random({7, 4, 2}, 2));
  expect_product(random({3, 33, 65}, 1), random({1, 65, 47}, 2));
  expect_product(random({40, 9, 8}, 1), random({40, 8, 7}, 2));
}

TEST_P(MatmulTest, TransposedOperands_MatchFormula) {
  const Tensor a = random({130, 67}, 1), b = random({45, 130}, 2);
  expect_product(a.transpose(), b.transpose());
  expect_product(a.transpose(), random({130, 20}, 3));
  expect_product(random({20, 130}, 3), b.transpose());
  expect_product(random({3, 20, 30}, 1).transpose(), random({3, 20, 10}, 2));
  expect_product(random({3, 5, 30}, 1), random({3, 10, 30}, 2).transpose());
  expect_product(random({4, 3, 6}, 1).transpose(0, 1), random({3, 6, 5}, 2));
}

TEST_P(MatmulTest, OtherViews_MatchFormula) {
  const Tensor a = random({20, 30}, 1), b = random({30, 40}, 2);
  expect_product(a.slice(1, 3, 20), b.slice(0, 5, 22));
  expect_product(a.slice(0, 2, 3), b.slice(1, 7, 8));
  expect_product(a.slice(1, 4, 5), b.slice(0, 9, 10));
  expect_product(random({6, 4, 5}, 1).permute({1, 0, 2}), random({4, 5, 3}, 2));
  expect_product(random({6, 4, 5}, 1).permute({2, 1, 0}), random({5, 6, 3}, 2));
  expect_product(random({2, 3, 4, 5}, 1).permute({0, 2, 3, 1}).slice(1, 1, 3), random({3, 6}, 2));
  expect_product(random({1, 5}, 1).broadcast_view({4, 5}), random({5, 1}, 2).broadcast_view({5, 6}));
}

TEST_P(MatmulTest, MatchesPyTorch) {
  for (const golden::Case& one : golden_cases("matmul")) {
    const bool transpose_a = one.params.at("transpose_a"), transpose_b = one.params.at("transpose_b");
    expect_golden(one, {"a", "b"}, dtype(), device(), tolerance(), [&](const auto& in) {
      return matmul(transpose_a ? in[0].transpose() : in[0], transpose_b ? in[1].transpose() : in[1]);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, MatmulTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

class MatmulGradient : public testing::TestWithParam<Device> {};

TEST_P(MatmulGradient, MatchesCentralDifferences) {
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{{{3, 4}, {4, 5}},
                                                                 {{1, 4}, {4, 1}},
                                                                 {{2, 3, 4}, {4, 2}},
                                                                 {{3, 4}, {2, 4, 2}},
                                                                 {{2, 1, 2, 3}, {3, 3, 2}}})
    expect_gradients(
        [](const auto& in) { return matmul(in[0], in[1]); },
        {random_tensor(a, DType::f64, GetParam(), 1), random_tensor(b, DType::f64, GetParam(), 2)});
  expect_gradients(
      [](const auto& in) { return matmul(in[0].transpose(), in[1].slice(1, 1, 3)); },
      {random_tensor({4, 3}, DType::f64, GetParam(), 1), random_tensor({4, 5}, DType::f64, GetParam(), 2)});
}

TEST_P(MatmulGradient, InnerSizeZero_GradientIsEmpty) {
  Tensor a = random_tensor({2, 0}, DType::f64, GetParam(), 1).set_requires_grad();
  const Tensor b = random_tensor({0, 3}, DType::f64, GetParam(), 1);
  backward(sum(matmul(a, b)));
  EXPECT_EQ(a.grad().shape(), (Shape{2, 0}));
}

TEST_P(MatmulGradient, OneOperandRequiresGrad_OtherGetsNone) {
  Tensor a = random_tensor({2, 3}, DType::f64, GetParam(), 1).set_requires_grad();
  const Tensor b = random_tensor({3, 2}, DType::f64, GetParam(), 2);
  backward(sum(matmul(a, b)));
  EXPECT_TRUE(a.grad().defined());
  EXPECT_FALSE(b.grad().defined());
}

INSTANTIATE_TEST_SUITE_P(Devices, MatmulGradient, testing::ValuesIn(test_devices()), device_name);

TEST(Matmul, PrecisionScope_RestoresPrevious) {
  EXPECT_EQ(matmul_precision(), MatmulPrecision::fp32);
  {
    const MatmulPrecisionScope scope(MatmulPrecision::tf32);
    EXPECT_EQ(matmul_precision(), MatmulPrecision::tf32);
    for (Device device : test_devices()) {
      const Tensor a = random_tensor({64, 96}, DType::f32, device, 1),
                   b = random_tensor({96, 32}, DType::f32, device, 2);
      expect_values(matmul(a, b), product_of(a, b), 2e-3);
      const Tensor c = random_tensor({64, 96}, DType::f64, device, 1),
                   d = random_tensor({96, 32}, DType::f64, device, 2);
      expect_values(matmul(c, d), product_of(c, d), 1e-12);
    }
  }
  EXPECT_EQ(matmul_precision(), MatmulPrecision::fp32);
}

TEST(Matmul, ShapeMismatch_ErrorNamesShapes) {
  const auto tensor = [](const Shape& shape, DType dtype = DType::f32) {
    return random_tensor(shape, dtype, cpu_device, 1);
  };
  const std::string start = "[matmul] expected matrices or batches of shapes (…, m, k) and (…, k, n), got ";
  EXPECT_EQ(error_text([&] { matmul(tensor({2, 3}), tensor({4, 5})); }), start + "[2, 3] and [4, 5]");
  EXPECT_EQ(error_text([&] { matmul(tensor({3}), tensor({3, 5})); }), start + "[3] and [3, 5]");
  EXPECT_EQ(error_text([&] { matmul(tensor({2, 3}), tensor({3})); }), start + "[2, 3] and [3]");
  EXPECT_EQ(error_text([&] {
              matmul(tensor({2, 2, 3}), tensor({3, 3, 2}));
            }),
            "[matmul] expected shapes that broadcast together, got [2] and [3]");
  EXPECT_EQ(error_text([&] {
              matmul(tensor({2, 3}), tensor({3, 2}, DType::f64));
            }),
            "[matmul] expected tensors of one dtype, got f32 and f64");
  EXPECT_EQ(error_text([&] {
              matmul(tensor({2, 3}, DType::i32), tensor({3, 2}, DType::i32));
            }),
            "[matmul] expected a floating dtype, got i32");
}

}  // namespace
}  // namespace tandem
