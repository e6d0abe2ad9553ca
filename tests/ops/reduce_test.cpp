#include "tandem/ops/reduce.h"

#include <algorithm>
#include <limits>

#include "tandem/core/parallel.h"
#include "tandem/ops/fill.h"
#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

// The elements of each output, in row-major order of the reduced axes.
std::vector<std::vector<double>> groups_of(const Tensor& x, const Dims& axes) {
  std::vector<bool> is_reduced(static_cast<std::size_t>(x.rank()), axes.rank() == 0);
  for (std::int64_t axis : axes)
    is_reduced[static_cast<std::size_t>(normalize_axis(static_cast<int>(axis), x.rank(), "test"))] = true;
  std::vector<std::int64_t> order;
  std::int64_t outputs = 1;
  for (int pass = 0; pass < 2; ++pass)
    for (int axis = 0; axis < x.rank(); ++axis)
      if (is_reduced[static_cast<std::size_t>(axis)] == (pass == 1)) {
        order.push_back(axis);
        if (pass == 0) outputs *= x.shape()[axis];
      }
  const std::vector<double> values = values_of(x.permute(Dims(order)));
  std::vector<std::vector<double>> groups(static_cast<std::size_t>(outputs));
  const std::size_t length = outputs > 0 ? values.size() / groups.size() : 0;
  for (std::size_t i = 0; i < groups.size(); ++i)
    groups[i].assign(values.begin() + static_cast<std::ptrdiff_t>(i * length),
                     values.begin() + static_cast<std::ptrdiff_t>((i + 1) * length));
  return groups;
}

std::vector<double> per_group(const Tensor& x, const Dims& axes, auto f) {
  std::vector<double> results;
  for (const auto& group : groups_of(x, axes)) results.push_back(f(group));
  return results;
}

double sum_of(const std::vector<double>& values) {
  double total = 0;
  for (double value : values) total += value;
  return total;
}

double index_of_max(const std::vector<double>& values) {
  return static_cast<double>(std::max_element(values.begin(), values.end()) - values.begin());
}

// Rows, columns, all axes, middle axes and separated axes; sizes 1, odd, and around those of vectors, warps,
// teams and chunks.
const std::vector<std::pair<Shape, Dims>> reductions = {
    {{1}, {0}},          {{7}, {}},         {{31}, {0}},
    {{33}, {0}},         {{257}, {0}},      {{70001}, {}},
    {{3, 5}, {0}},       {{3, 5}, {1}},     {{3, 5}, {}},
    {{17, 33}, {-1}},    {{17, 33}, {-2}},  {{1031, 7}, {0}},
    {{7, 1031}, {1}},    {{2, 40001}, {1}}, {{40001, 3}, {0}},
    {{129, 65}, {0}},    {{2, 3, 4}, {1}},  {{2, 3, 4}, {0, 2}},
    {{2, 3, 4}, {0, 1}}, {{5, 1, 9}, {1}},  {{33, 4, 70}, {0, 2}},
    {{5, 129, 33}, {1}}, {{300, 1}, {0}},   {{4, 2, 3, 5}, {-1, 1}}};

class ReduceTest : public OpTest {};

TEST_P(ReduceTest, AnyShapeAndAxes_MatchFormula) {
  std::uint32_t seed = 0;
  for (const auto& [shape, axes] : reductions) {
    SCOPED_TRACE(shape.to_string() + " over " + axes.to_string());
    const Tensor x = random_tensor(shape, dtype(), device(), ++seed, 0, 9);
    const Tensor total = sum(x, axes);
    EXPECT_EQ(total.device(), device());
    EXPECT_EQ(total.dtype(), is_floating(dtype()) ? dtype() : DType::i64);
    expect_values(total, per_group(x, axes, sum_of), dtype() == DType::bf16 ? 4e-3 : tolerance());
    const Tensor maximum = max(x, axes);
    EXPECT_EQ(maximum.dtype(), dtype());
    expect_values(maximum,
                  per_group(x, axes, [](const auto& v) { return *std::max_element(v.begin(), v.end()); }), 0);
    if (axes.rank() == 1)
      expect_values(argmax(x, static_cast<int>(axes[0])), per_group(x, axes, index_of_max), 0);
  }
}

TEST_P(ReduceTest, StridedTensors_MatchContiguous) {
  const Tensor x = random_tensor({37, 20, 6}, dtype(), device(), 3, 0, 9);
  for (const Tensor& view : {x.transpose(0, 2), x.slice(1, 3, 16), x.permute({1, 2, 0}), x.slice(2, 2, 3)})
    for (const Dims& axes : {Dims{0}, Dims{1}, Dims{2}, Dims{0, 2}, Dims{}}) {
      expect_values(sum(view, axes), values_of(sum(view.clone(), axes)), tolerance());
      expect_values(max(view, axes), values_of(max(view.clone(), axes)), 0);
      if (axes.rank() == 1)
        expect_values(argmax(view, static_cast<int>(axes[0])),
                      values_of(argmax(view.clone(), static_cast<int>(axes[0]))), 0);
    }
}

TEST_P(ReduceTest, ArgmaxOfEqualElements_IsTheFirst) {
  for (const Shape& shape : {Shape{40001}, Shape{3, 257}, Shape{257, 3}, Shape{3}}) {
    const Tensor x = full(shape, 4, dtype(), device());
    expect_values(argmax(x, 0), std::vector<double>(static_cast<std::size_t>(x.numel() / x.size(0)), 0), 0);
    expect_values(argmax(x, -1), std::vector<double>(static_cast<std::size_t>(x.numel() / x.size(-1)), 0), 0);
  }
}

TEST_P(ReduceTest, KeepAxes_KeepsSizeOne) {
  const Tensor x = random_tensor({2, 3, 4}, dtype(), device(), 1, 0, 9);
  EXPECT_EQ(sum(x, {1}, {.keep_axes = true}).shape(), (Shape{2, 1, 4}));
  EXPECT_EQ(sum(x, {0, -1}, {.keep_axes = true}).shape(), (Shape{1, 3, 1}));
  EXPECT_EQ(sum(x, {}, {.keep_axes = true}).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(sum(x, {0, -1}).shape(), (Shape{3}));
  EXPECT_EQ(sum(x).shape(), Shape{});
  EXPECT_EQ(argmax(x, -2, {.keep_axes = true}).shape(), (Shape{2, 1, 4}));
  EXPECT_EQ(argmax(x, -2).shape(), (Shape{2, 4}));
  EXPECT_EQ(max(x, {2}, {.keep_axes = true}).shape(), (Shape{2, 3, 1}));
}

TEST_P(ReduceTest, EmptySum_IsZero) {
  expect_values(sum(random_tensor({0, 3}, dtype(), device(), 1), {0}), {0, 0, 0}, 0);
  expect_values(sum(random_tensor({2, 0}, dtype(), device(), 1)), {0}, 0);
  EXPECT_EQ(sum(random_tensor({0, 3}, dtype(), device(), 1), {1}).shape(), Shape{0});
  EXPECT_EQ(max(random_tensor({0, 3}, dtype(), device(), 1), {1}).shape(), Shape{0});
}

INSTANTIATE_TEST_SUITE_P(Devices, ReduceTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16, DType::u8,
                                                     DType::i32, DType::i64})),
                         op_case_name);

class FloatReduceTest : public OpTest {};

TEST_P(FloatReduceTest, NanIsTheMaximum) {
  const Tensor x = tensor_of({1, infinity, nan, 5, nan, 2, -infinity, -1, -infinity, -3, -4, -5}, {2, 6},
                             dtype(), device());
  expect_values(max(x, {1}), {nan, -1}, 0);
  expect_values(argmax(x, 1), {2, 1}, 0);
  expect_values(argmax(x, 0), {0, 0, 0, 0, 0, 0}, 0);
  expect_values(max(tensor_of({-infinity, -infinity}, {2}, dtype(), device())), {-infinity}, 0);
  std::vector<double> long_row(70001, 1);
  long_row[69999] = nan;
  long_row[60000] = nan;
  expect_values(argmax(tensor_of(long_row, {70001}, dtype(), device()), 0), {60000}, 0);
}

TEST_P(FloatReduceTest, Sum_KeepsSmallTerms) {
  std::vector<double> values(100000, 0.0009765625);  // 2⁻¹⁰: every partial sum is exact in f64
  values[0] = 4096;
  const double total = 4096 + 99999 * 0.0009765625;
  expect_values(sum(tensor_of(values, {100000}, dtype(), device())), {total},
                dtype() == DType::bf16 ? 4e-3 : 1e-7);
}

TEST_P(FloatReduceTest, RepeatedWithAnyThreadCount_GivesSameBits) {
  const Tensor x = random_tensor({301, 5001}, dtype(), device(), 8);
  for (const Dims& axes : {Dims{0}, Dims{1}, Dims{}}) {
    const auto first = values_of(sum(x, axes));
    EXPECT_EQ(values_of(sum(x, axes)), first);
    const ThreadLimit one(1);
    EXPECT_EQ(values_of(sum(x, axes)), first);
  }
}

TEST_P(FloatReduceTest, MatchesPyTorch) {
  for (const std::string op : {"sum", "mean"})
    for (const golden::Case& one : golden_cases(op)) {
      const std::vector<std::int64_t> axes = one.params.at("axes");
      const ReduceOptions options{.keep_axes = one.params.at("keep_dims")};
      expect_golden(one, {"x"}, dtype(), device(), tolerance(), [&](const auto& in) {
        return op == "sum" ? sum(in[0], Dims(axes), options) : mean(in[0], Dims(axes), options);
      });
    }
  if (dtype() == DType::bf16) return;  // rounding to bf16 creates ties that PyTorch did not have
  for (const golden::Case& one : golden_cases("argmax")) {
    SCOPED_TRACE(one.name);
    expect_values(argmax(golden_tensor(one, "x", dtype(), device()), one.params.at("axis")),
                  one.array("expected").values<double>(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, FloatReduceTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

class ReduceGradient : public testing::TestWithParam<Device> {};

TEST_P(ReduceGradient, MatchesCentralDifferences) {
  for (const auto& [shape, axes] : std::vector<std::pair<Shape, Dims>>{
           {{7}, {}}, {{3, 4}, {0}}, {{3, 4}, {1}}, {{3, 4}, {}}, {{2, 3, 4}, {0, 2}}, {{2, 3, 4}, {-2}}})
    for (const bool keep : {false, true}) {
      const std::vector<Tensor> inputs = {random_tensor(shape, DType::f64, GetParam(), 5)};
      const ReduceOptions options{.keep_axes = keep};
      expect_gradients([&, axes = axes](const auto& in) { return sum(in[0], axes, options); }, inputs);
      expect_gradients([&, axes = axes](const auto& in) { return mean(in[0], axes, options); }, inputs);
      expect_gradients([&, axes = axes](const auto& in) { return max(in[0], axes, options); }, inputs);
    }
}

TEST_P(ReduceGradient, Max_GoesToTheFirstMaximum) {
  Tensor x = tensor_of({1, 5, 5, 7, 7, 2}, {2, 3}, DType::f64, GetParam()).set_requires_grad();
  backward(max(x, {1}), tensor_of({10, 20}, {2}, DType::f64, GetParam()));
  expect_values(x.grad(), {0, 10, 0, 20, 0, 0}, 0);
}

TEST_P(ReduceGradient, SumTo_MatchesCentralDifferences) {
  const std::vector<Tensor> inputs = {random_tensor({2, 3, 4}, DType::f64, GetParam(), 5)};
  for (const Shape& shape : {Shape{3, 1}, Shape{4}, Shape{1, 1}, Shape{2, 3, 4}, Shape{}})
    expect_gradients([&](const auto& in) { return sum_to(in[0], shape); }, inputs);
  expect_values(sum_to(inputs[0], {3, 1}), per_group(inputs[0], {0, 2}, sum_of), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Devices, ReduceGradient, testing::ValuesIn(test_devices()), device_name);

TEST(Reduce, BadInput_ErrorNamesOperationAndValues) {
  const Tensor x = random_tensor({2, 0}, DType::f32, cpu_device, 1);
  EXPECT_EQ(error_text([&] { max(x, {1}); }),
            "[max] expected at least one element to reduce, got shape [2, 0]");
  EXPECT_EQ(error_text([&] { argmax(x, 1); }),
            "[argmax] expected at least one element to reduce, got shape [2, 0]");
  EXPECT_EQ(error_text([&] { mean(x, {1}); }),
            "[mean] expected at least one element to average, got shape [2, 0]");
  EXPECT_EQ(error_text([&] { mean(tensor_of({1}, {1}, DType::i32)); }),
            "[mean] expected a floating dtype, got i32");
  EXPECT_NE(error_text([&] { sum(x, {2}); }).find("[sum]"), std::string::npos);
  EXPECT_NE(error_text([&] { argmax(x, -3); }).find("[argmax]"), std::string::npos);
  EXPECT_EQ(error_text([&] { sum(Tensor()); }), "[sum] expected a tensor, got an undefined one");
}

}  // namespace
}  // namespace tandem
