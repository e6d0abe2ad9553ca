#include "tandem/ops/cast.h"

#include <limits>

#include "tests/ops/op_test.h"

namespace tandem {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr DType all_dtypes[] = {DType::f32, DType::f64, DType::bf16, DType::u8, DType::i32, DType::i64};

class CastTest : public OpTest {};

// Small whole numbers are exact in every dtype.
TEST_P(CastTest, SmallIntegers_AreExactInEveryDtype) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{33}, Shape{17, 5}, Shape{70001}}) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < shape.numel(); ++i) values.push_back(static_cast<double>(i % 101));
    const Tensor x = tensor_of(values, shape, dtype(), device());
    for (DType to : all_dtypes) {
      const Tensor y = cast(x, to);
      EXPECT_EQ(y.dtype(), to);
      EXPECT_EQ(y.shape(), shape);
      EXPECT_EQ(y.device(), device());
      expect_values(y, values, 0);
    }
  }
}

TEST_P(CastTest, SameDtype_ReturnsTheTensor) {
  const Tensor x = tensor_of({1, 2}, {2}, dtype(), device());
  EXPECT_EQ(cast(x, dtype()).bytes(), x.bytes());
}

TEST_P(CastTest, StridedInput_MatchesContiguous) {
  const Tensor x = random_tensor({6, 5}, dtype(), device(), 1, 0, 9);
  for (DType to : all_dtypes)
    expect_values(cast(x.transpose(), to), values_of(cast(x.transpose().clone(), to)), 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, CastTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16, DType::u8,
                                                     DType::i32, DType::i64})),
                         op_case_name);

class CastFloats : public OpTest {};

TEST_P(CastFloats, ToInteger_TruncatesSaturatesAndMapsNanToZero) {
  // Every number here is exact in bf16.
  const Tensor x =
      tensor_of({nan_value, inf, -inf, 1e30, -1e30, 2.75, -2.75, -0.5, 255.0, 256.0, 300.0, -1.0}, {12},
                dtype(), device());
  using U8 = std::vector<std::uint8_t>;
  EXPECT_EQ(cast(x, DType::u8).to_vector<std::uint8_t>(), (U8{0, 255, 0, 255, 0, 2, 0, 0, 255, 255, 255, 0}));
  constexpr auto low = std::numeric_limits<std::int32_t>::min(),
                 high = std::numeric_limits<std::int32_t>::max();
  using I32 = std::vector<std::int32_t>;
  EXPECT_EQ(cast(x, DType::i32).to_vector<std::int32_t>(),
            (I32{0, high, low, high, low, 2, -2, 0, 255, 256, 300, -1}));
  constexpr auto low64 = std::numeric_limits<std::int64_t>::min(),
                 high64 = std::numeric_limits<std::int64_t>::max();
  using I64 = std::vector<std::int64_t>;
  EXPECT_EQ(cast(x, DType::i64).to_vector<std::int64_t>(),
            (I64{0, high64, low64, high64, low64, 2, -2, 0, 255, 256, 300, -1}));
  const Tensor edges = tensor_of({0x1p31, -0x1p31, 0x1p30, 0x1p63, -0x1p63, 0x1p62}, {6}, dtype(), device());
  EXPECT_EQ(cast(edges, DType::i32).to_vector<std::int32_t>(), (I32{high, low, 1 << 30, high, low, high}));
  EXPECT_EQ(
      cast(edges, DType::i64).to_vector<std::int64_t>(),
      (I64{std::int64_t{1} << 31, -(std::int64_t{1} << 31), 1 << 30, high64, low64, std::int64_t{1} << 62}));
}

TEST_P(CastFloats, BetweenFloats_KeepsNanAndInfinity) {
  const Tensor x = tensor_of({nan_value, inf, -inf}, {3}, dtype(), device());
  for (DType to : {DType::f32, DType::f64, DType::bf16})
    expect_values(cast(x, to), {nan_value, inf, -inf}, 0);
}

TEST_P(CastFloats, Gradient_IsCastBack) {
  for (DType to : {DType::f32, DType::f64, DType::bf16}) {
    Tensor x = random_tensor({4}, dtype(), device(), 3).set_requires_grad();
    backward(cast(x, to), tensor_of({1, 2, 3, 4}, {4}, to, device()));
    EXPECT_EQ(x.grad().dtype(), dtype());
    expect_values(x.grad(), {1, 2, 3, 4}, 0);
  }
  const Tensor x = random_tensor({4}, dtype(), device(), 3).set_requires_grad();
  EXPECT_FALSE(cast(x, DType::i32).requires_grad());
}

INSTANTIATE_TEST_SUITE_P(Devices, CastFloats,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

class CastDevice : public testing::TestWithParam<Device> {};

TEST_P(CastDevice, BetweenIntegers_KeepsLowBits) {
  const Tensor x =
      Tensor::from(std::vector<std::int64_t>{-1, 256, (std::int64_t{1} << 40) + 7}, {3}, GetParam());
  EXPECT_EQ(cast(x, DType::u8).to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{255, 0, 7}));
  EXPECT_EQ(cast(x, DType::i32).to_vector<std::int32_t>(), (std::vector<std::int32_t>{-1, 256, 7}));
}

TEST_P(CastDevice, ToFloat_RoundsToNearest) {
  const Tensor x = Tensor::from(std::vector<double>{1 + 0x1p-25, 1 + 0x1p-23, 1e300}, {3}, GetParam());
  EXPECT_EQ(cast(x, DType::f32).to_vector<float>(),
            (std::vector<float>{1.0f, 1 + 0x1p-23f, std::numeric_limits<float>::infinity()}));
  const Tensor big = Tensor::from(std::vector<std::int32_t>{16777217, 16777219}, {2}, GetParam());
  EXPECT_EQ(cast(big, DType::f32).to_vector<float>(), (std::vector<float>{16777216.0f, 16777220.0f}));
}

INSTANTIATE_TEST_SUITE_P(Devices, CastDevice, testing::ValuesIn(test_devices()), device_name);

TEST(Cast, EmptyTensor_Throws) {
  EXPECT_EQ(error_text([] { cast(Tensor(), DType::f32); }), "[cast] expected a tensor, got an undefined one");
}

}  // namespace
}  // namespace tandem
