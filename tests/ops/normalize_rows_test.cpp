#include "tandem/ops/normalize_rows.h"

#include <array>
#include <limits>

#include "tandem/core/parallel.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

// The definition, in f64.
std::vector<double> by_definition(const Tensor& x) {
  std::vector<double> values = values_of(x);
  const auto columns = static_cast<std::size_t>(x.size(1));
  for (std::size_t begin = 0; begin < values.size(); begin += columns) {
    double square = 0;
    for (std::size_t i = begin; i < begin + columns; ++i) square += values[i] * values[i];
    for (std::size_t i = begin; i < begin + columns; ++i) values[i] /= std::sqrt(square);
  }
  return values;
}

class NormalizeRowsTest : public OpTest {};

TEST_P(NormalizeRowsTest, AnyShape_MatchesDefinition) {
  std::uint32_t seed = 0;
  for (const auto& [rows, columns] : {std::array{0, 4},
                                      {3, 0},
                                      {1, 1},
                                      {5, 3},
                                      {9, 31},
                                      {8, 32},
                                      {17, 33},
                                      {2, 256},
                                      {3, 257},
                                      {700, 2},
                                      {2, 1025}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns);
    const Tensor x = random_tensor({rows, columns}, dtype(), device(), ++seed);
    const Tensor z = normalize_rows(x);
    EXPECT_EQ(z.shape(), x.shape());
    EXPECT_EQ(z.dtype(), dtype());
    expect_values(z, by_definition(x), tolerance());
  }
  const Tensor wide = random_tensor({6, 4}, dtype(), device(), 7);
  expect_values(normalize_rows(wide.transpose()), by_definition(wide.transpose()), tolerance());
}

TEST_P(NormalizeRowsTest, ShortLongAndNanRows_AreSafe) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor x = tensor_of({0, 0, 1e-20, 1e-20, 3e30, 4e30, nan, 1, 3e-9, 4e-9}, {5, 2}, dtype(), device());
  x.set_requires_grad();
  const Tensor z = normalize_rows(x);
  expect_values(z, {0, 0, 0, 0, 0.6, 0.8, nan, nan, 0.6, 0.8}, tolerance());
  backward(z, tensor_of({1, 1, 1, 1, 1, 1, 1, 1, 0, 0}, {5, 2}, dtype(), device()));
  expect_values(x.grad(), {0, 0, 0, 0, 0, 0, nan, nan, 0, 0}, tolerance());
}

INSTANTIATE_TEST_SUITE_P(Devices, NormalizeRowsTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

class NormalizeRowsGradient : public testing::TestWithParam<Device> {};

TEST_P(NormalizeRowsGradient, MatchesCentralDifferences) {
  for (const auto& [rows, columns] : {std::array{1, 1}, {1, 2}, {4, 3}, {3, 33}, {1, 300}})
    expect_gradients([](const auto& in) { return normalize_rows(in[0]); },
                     {random_tensor({rows, columns}, DType::f64, GetParam(), 3)});
}

INSTANTIATE_TEST_SUITE_P(Devices, NormalizeRowsGradient, testing::ValuesIn(test_devices()), device_name);

TEST(NormalizeRows, InvalidInput_IsAnError) {
  EXPECT_EQ(error_text([] { normalize_rows(Tensor::empty({3}, DType::f32)); }),
            "[normalize_rows] expected a matrix (n, d), got [3]");
  EXPECT_EQ(error_text([] {
              normalize_rows(Tensor::empty({3, 2}, DType::i32));
            }),
            "[normalize_rows] expected a floating dtype, got i32");
}

}  // namespace
}  // namespace tandem
