#include "tandem/ops/gather.h"

#include "tandem/ops/cast.h"
#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

Tensor indices_of(const std::vector<std::int64_t>& values, DType dtype, Device device) {
  return cast(Tensor::from(values, {static_cast<std::int64_t>(values.size())}, device), dtype);
}

class GatherTest : public OpTest {};

// Widths that cover every code path: odd bytes, words, 16-byte vectors, long rows.
TEST_P(GatherTest, AnyRowWidth_GathersRows) {
  for (std::int64_t width : {1, 2, 3, 4, 16, 33, 1000}) {
    const Tensor table = random_tensor({37, width}, dtype(), device(), 1, 0, 90);
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < 100; ++i) rows.push_back(i * 7 % 37);
    const auto values = values_of(table);
    std::vector<double> expected;
    for (std::int64_t row : rows)
      for (std::int64_t i = 0; i < width; ++i) expected.push_back(values[row * width + i]);
    for (DType index_dtype : {DType::i64, DType::i32}) {
      const Tensor actual = gather_rows(table, indices_of(rows, index_dtype, device()));
      EXPECT_EQ(actual.shape(), (Shape{100, width}));
      EXPECT_EQ(actual.dtype(), dtype());
      expect_values(actual, expected, 0);
    }
  }
}

TEST_P(GatherTest, AnyRankAndStrides_GathersRows) {
  const Tensor table = tensor_of({1, 2, 3, 4, 5, 6}, {2, 3}, dtype(), device());
  const Tensor indices = indices_of({2, 0, 1, 1}, DType::i64, device()).reshape({2, 2});
  const Tensor actual = gather_rows(table.transpose(), indices.transpose());
  EXPECT_EQ(actual.shape(), (Shape{2, 2, 2}));
  expect_values(actual, {3, 6, 2, 5, 1, 4, 2, 5}, 0);
  const Tensor scalar = gather_rows(table, indices_of({1}, DType::i64, device()).reshape({}));
  EXPECT_EQ(scalar.shape(), (Shape{3}));
  expect_values(scalar, {4, 5, 6}, 0);
  expect_values(gather_rows(table.reshape({6}), indices), {3, 1, 2, 2}, 0);
}

TEST_P(GatherTest, EmptyTensors_GiveEmptyResult) {
  const Tensor table = random_tensor({3, 2}, dtype(), device(), 1, 0, 9);
  EXPECT_EQ(gather_rows(table, indices_of({}, DType::i64, device())).shape(), (Shape{0, 2}));
  const Tensor thin = random_tensor({3, 0}, dtype(), device(), 1);
  EXPECT_EQ(gather_rows(thin, indices_of({2, 1}, DType::i64, device())).shape(), (Shape{2, 0}));
}

INSTANTIATE_TEST_SUITE_P(Devices, GatherTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16, DType::u8,
                                                     DType::i32, DType::i64})),
                         op_case_name);

class GatherGolden : public OpTest {};

TEST_P(GatherGolden, MatchesPyTorch) {
  expect_golden("gather_rows", dtype(), device(), tolerance(),
                [&](const golden::Case& one, const std::vector<Tensor>& in) {
                  const golden::Array& indices = one.array("indices");
                  return gather_rows(
                      in[0], Tensor::from(indices.values<std::int64_t>(),
                                          Shape(std::span<const std::int64_t>(indices.shape)), device()));
                });
}

INSTANTIATE_TEST_SUITE_P(Devices, GatherGolden, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

class GatherDevice : public testing::TestWithParam<Device> {};

TEST_P(GatherDevice, Gradients_MatchCentralDifferences) {
  for (DType index_dtype : {DType::i64, DType::i32}) {
    const Tensor indices = indices_of({3, 0, 3, 1}, index_dtype, GetParam());
    expect_gradients([&](const auto& in) { return gather_rows(in[0], indices); },
                     {random_tensor({5, 3}, DType::f64, GetParam(), 1)});
    expect_gradients([&](const auto& in) { return gather_rows(in[0].transpose(), indices); },
                     {random_tensor({2, 4}, DType::f64, GetParam(), 1)});
  }
}

// The value of these sums depends on their order, which must be the same on every run and device.
TEST_P(GatherDevice, Gradient_AccumulatesInIndexOrder) {
  constexpr std::int64_t count = 3000, rows = 7, width = 5;
  std::vector<std::int64_t> picks;
  for (std::int64_t i = 0; i < count; ++i) picks.push_back(i * i % rows);
  const Tensor g = random_tensor({count, width}, DType::f32, GetParam(), 1, -1e3, 1e3);
  const auto values = g.to_vector<float>();
  std::vector<float> expected(rows * width, 0);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t k = 0; k < width; ++k) expected[picks[i] * width + k] += values[i * width + k];
  for (int run = 0; run < 3; ++run) {
    Tensor table = random_tensor({rows, width}, DType::f32, GetParam(), 2).set_requires_grad();
    backward(gather_rows(table, indices_of(picks, DType::i64, GetParam())), g);
    EXPECT_EQ(table.grad().to_vector<float>(), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GatherDevice, testing::ValuesIn(test_devices()), device_name);

TEST(Gather, IndexOutOfRange_ThrowsOnCpu) {
  const Tensor table = random_tensor({5, 2}, DType::f32, cpu_device, 1);
  EXPECT_EQ(error_text([&] {
              gather_rows(table, indices_of({0, 5}, DType::i64, cpu_device));
            }),
            "[gather_rows] expected indices of 0 or more and below 5, got 5 at position 1");
  EXPECT_EQ(error_text([&] { gather_rows(table, indices_of({-1}, DType::i32, cpu_device)); }),
            "[gather_rows] expected indices of 0 or more and below 5, got -1 at position 0");
}

TEST(Gather, IndexOutOfRange_GivesZerosOn_cuda) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  Tensor table = tensor_of({1, 2, 3, 4}, {2, 2}, DType::f32, cuda_device()).set_requires_grad();
  const Tensor rows = gather_rows(table, indices_of({1, 2, -1, 0}, DType::i64, cuda_device()));
  expect_values(rows, {3, 4, 0, 0, 0, 0, 1, 2}, 0);
  backward(sum(rows));
  expect_values(table.grad(), {1, 1, 1, 1}, 0);
}

TEST(Gather, BadOperands_ErrorNamesValues) {
  const Tensor table = random_tensor({5, 2}, DType::f32, cpu_device, 1);
  const Tensor indices = indices_of({0}, DType::i64, cpu_device);
  EXPECT_EQ(error_text([&] { gather_rows(table, table); }),
            "[gather_rows] expected indices of i64 or i32, got f32");
  EXPECT_EQ(error_text([&] { gather_rows(table.slice(0, 0, 1).slice(1, 0, 1).reshape({}), indices); }),
            "[gather_rows] expected a table of at least one axis, got shape []");
  EXPECT_EQ(error_text([&] {
              gather_rows(table, indices.reshape({1, 1, 1, 1, 1, 1, 1, 1}));
            }),
            "[gather_rows] expected a result of at most 8 axes, got 9");
  EXPECT_EQ(error_text([&] { gather_rows(Tensor(), indices); }),
            "[gather_rows] expected a tensor, got an undefined one");
}

}  // namespace
}  // namespace tandem
