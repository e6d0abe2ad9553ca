#include "tandem/ops/xxt.h"

#include <fmt/format.h>

#include "tests/ops/version_case.h"

namespace tandem {
namespace {

// Σ|products| of each element of X·Xᵀ.
std::vector<double> magnitudes_of(const Tensor& x) {
  return values_of(xxt(absolute(x), Version::reference));
}

void expect_symmetric_bits(const Tensor& result) {
  EXPECT_EQ(bits_of(result), bits_of(result.transpose()));
}

class XxtGolden : public testing::TestWithParam<StoredCase> {};

// f64 within 1e-12, f32 within 1e-5 of Σ|products|; integers exact.
TEST_P(XxtGolden, MatchesNumPy) {
  const StoredCase& one = GetParam();
  const Tensor x = one.tensor("x");
  const Tensor actual = xxt(x, one.version);
  EXPECT_EQ(actual.shape(), (Shape{x.size(0), x.size(0)}));
  EXPECT_EQ(actual.dtype(), x.dtype());
  EXPECT_EQ(actual.device(), one.device());
  expect_within(actual, one.stored.array("expected").values<double>(), magnitudes_of(x),
                sum_tolerance(x.dtype()));
}

INSTANTIATE_TEST_SUITE_P(Cases, XxtGolden, testing::ValuesIn(stored_cases("xxt")), stored_case_name);

class XxtTest : public testing::TestWithParam<VersionCase> {
 protected:
  Tensor random(const Shape& shape, std::uint32_t seed) const {
    return random_tensor(shape, GetParam().dtype, GetParam().device(), seed, -50, 50);
  }
  // Checks that the result matches `reference` in f64 (exact for these integers), is symmetric and written
  // everywhere.
  void expect_matches_reference(const Tensor& x) const {
    SCOPED_TRACE(x.shape().to_string());
    const auto expected = values_of(xxt(as_f64(x), Version::reference));
    const Shape shape{x.size(0), x.size(0)};
    poison_next(shape, x.dtype(), x.device());
    const Tensor actual = xxt(x, GetParam().version);
    EXPECT_EQ(actual.shape(), shape);
    EXPECT_EQ(actual.device(), x.device());
    expect_within(actual, expected, magnitudes_of(x), sum_tolerance(x.dtype()));
    expect_symmetric_bits(actual);
  }
};

TEST_P(XxtTest, AnyShape_MatchesReference) {
  std::uint32_t seed = 0;
  for (const Shape& shape :
       std::vector<Shape>{{0, 0},    {0, 5},    {1, 1},    {1, 2},    {2, 1},    {3, 7},     {7, 3},
                          {1, 5000}, {1031, 1}, {63, 4},   {65, 3},   {64, 64},  {127, 128}, {128, 129},
                          {129, 15}, {129, 17}, {255, 64}, {257, 66}, {70, 530}, {300, 1037}})
    expect_matches_reference(random(shape, ++seed));
}

// More tiles of 128 × 128 in the triangle than the largest GPU has multiprocessors.
TEST_P(XxtTest, ManyTiles_MatchReference) {
  expect_matches_reference(random({2052, 4}, 1));
  expect_matches_reference(random({2049, 3}, 2));
}

TEST_P(XxtTest, NoColumns_GivesZeros) {
  for (const std::int64_t rows : {1, 3, 130}) {
    const Shape shape{rows, rows};
    poison_next(shape, GetParam().dtype, GetParam().device());
    expect_values(xxt(random({rows, 0}, 1), GetParam().version),
                  std::vector<double>(static_cast<std::size_t>(rows * rows), 0), 0);
  }
}

TEST_P(XxtTest, StridedOperands_MatchReference) {
  const Tensor x = random({70, 131}, 1);
  expect_matches_reference(x.transpose());
  expect_matches_reference(x.slice(1, 3, 40));
  expect_matches_reference(x.slice(0, 5, 69));
  expect_matches_reference(x.slice(0, 1, 60).transpose().slice(0, 2, 100));
  expect_matches_reference(random({1, 9}, 2).broadcast_view({5, 9}));
}

// The triangle is split into one band per thread.
TEST_P(XxtTest, AnyThreadCount_MatchesReference) {
  for (const int threads : {1, 2, 3, 7}) {
    SCOPED_TRACE(threads);
    const ScopedThreadCount scope(threads);
    expect_matches_reference(random({257, 33}, 1));
    expect_matches_reference(random({65, 5}, 2));
  }
}

TEST_P(XxtTest, Repeated_GivesSameBits) {
  const Tensor x = random({300, 257}, 1);
  EXPECT_EQ(bits_of(xxt(x, GetParam().version)), bits_of(xxt(x, GetParam().version)));
}

TEST_P(XxtTest, ExplicitVersion_HasNoGradient) {
  Tensor x = random({3, 2}, 1);
  if (is_floating(x.dtype())) x.set_requires_grad();
  EXPECT_FALSE(xxt(x, GetParam().version).requires_grad());
  EXPECT_EQ(xxt(x).requires_grad(), x.requires_grad());
}

INSTANTIATE_TEST_SUITE_P(Versions, XxtTest,
                         testing::ValuesIn(version_cases({DType::f32, DType::f64, DType::i32})),
                         version_case_name);

class XxtVersion : public testing::TestWithParam<Version> {};

TEST_P(XxtVersion, Integers_WrapAround) {
  const Tensor x = tensor_of({65536, 1, 46341, 0, 2147483647, 2}, {3, 2}, DType::i32, device_of(GetParam()));
  EXPECT_EQ(xxt(x, GetParam()).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{1, -1257963520, -65534, -1257963520, -2147479015, 2147437307, -65534,
                                       2147437307, 5}));
}

INSTANTIATE_TEST_SUITE_P(Versions, XxtVersion, testing::ValuesIn(test_versions()), version_name);

struct Tf32Case {
  Device device;
  std::int64_t rows, columns;
};

std::string tf32_case_name(const testing::TestParamInfo<Tf32Case>& info) {
  return fmt::format("{}_{}x{}", info.param.device.is_cuda() ? "cuda" : "cpu", info.param.rows,
                     info.param.columns);
}

// Rows that are and are not whole tiles of 128, columns that are whole slices of 32, multiples of 4 (which
// TMA can address) and neither; more tiles than multiprocessors.
std::vector<Tf32Case> tf32_cases() {
  std::vector<Tf32Case> cases;
  for (Device device : test_devices())
    for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1},
                                                                                          {1, 4},
                                                                                          {1, 1000},
                                                                                          {5, 0},
                                                                                          {128, 32},
                                                                                          {127, 36},
                                                                                          {129, 64},
                                                                                          {130, 33},
                                                                                          {256, 192},
                                                                                          {257, 1028},
                                                                                          {300, 100},
                                                                                          {300, 1037},
                                                                                          {2181, 40}})
      cases.push_back({device, rows, columns});
  return cases;
}

class XxtTf32 : public testing::TestWithParam<Tf32Case> {};

TEST_P(XxtTf32, IsAccurateSymmetricAndReproducible) {
  const auto [device, rows, columns] = GetParam();
  const Tensor x = random_tensor({rows, columns}, DType::f32, device, 1, -1, 1);
  const auto expected = values_of(xxt(as_f64(x), Version::reference));
  poison_next({rows, rows}, DType::f32, device);
  const Tensor actual = xxt(x, tuned_version(x.device()), MatmulPrecision::tf32);
  const auto values = values_of(actual);
  ASSERT_EQ(values.size(), expected.size());
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    error += (values[i] - expected[i]) * (values[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  EXPECT_LE(std::sqrt(error), 2e-3 * std::sqrt(norm));  // the Frobenius norm, relative
  expect_symmetric_bits(actual);
  EXPECT_EQ(bits_of(xxt(x, tuned_version(x.device()), MatmulPrecision::tf32)), bits_of(actual));
}

INSTANTIATE_TEST_SUITE_P(Shapes, XxtTf32, testing::ValuesIn(tf32_cases()), tf32_case_name);

class XxtGradient : public testing::TestWithParam<Device> {};

TEST_P(XxtGradient, MatchesCentralDifferences) {
  const auto f = [](const std::vector<Tensor>& in) { return xxt(in[0]); };
  for (const Shape& shape : std::vector<Shape>{{1, 1}, {3, 4}, {4, 3}, {5, 1}, {1, 5}})
    expect_gradients(f, {random_tensor(shape, DType::f64, GetParam(), 1)});
  expect_gradients([](const auto& in) { return xxt(in[0].transpose().slice(0, 1, 4)); },
                   {random_tensor({3, 5}, DType::f64, GetParam(), 2)});
}

TEST_P(XxtGradient, NoRowsOrColumns_GradientIsEmpty) {
  for (const Shape& shape : std::vector<Shape>{{0, 3}, {3, 0}}) {
    Tensor x = random_tensor(shape, DType::f64, GetParam(), 1).set_requires_grad();
    backward(sum(xxt(x)));
    EXPECT_EQ(x.grad().shape(), shape);
  }
}

TEST_P(XxtGradient, Tf32_DoesNotAffectF64AndIntegers) {
  for (DType dtype : {DType::f64, DType::i32}) {
    const Tensor x = random_tensor({65, 40}, dtype, GetParam(), 1, -50, 50);
    EXPECT_EQ(bits_of(xxt(x, tuned_version(x.device()), MatmulPrecision::tf32)), bits_of(xxt(x)));
  }
  if (GetParam().is_cuda()) return;  // the CPU has no tensor cores to use
  const Tensor x = random_tensor({65, 40}, DType::f32, GetParam(), 1);
  EXPECT_EQ(bits_of(xxt(x, tuned_version(x.device()), MatmulPrecision::tf32)), bits_of(xxt(x)));
}

TEST_P(XxtGradient, WrongDevice_ErrorNamesDevice) {
  const Tensor here = random_tensor({2, 3}, DType::f32, GetParam(), 1);
  for (Version version : unsupported_versions(GetParam()))
    EXPECT_EQ(error_text([&] { xxt(here, version); }),
              fmt::format("[xxt] expected a version that runs on {}, got {}", GetParam().to_string(),
                          name_of(version)));
}

INSTANTIATE_TEST_SUITE_P(Devices, XxtGradient, testing::ValuesIn(test_devices()), device_name);

TEST(Xxt, BadOperands_ErrorNamesValues) {
  const auto tensor = [](const Shape& shape, DType dtype = DType::f32) {
    return random_tensor(shape, dtype, cpu_device, 1, 0, 9);
  };
  EXPECT_EQ(error_text([&] { xxt(tensor({3})); }), "[xxt] expected a matrix, got shape [3]");
  EXPECT_EQ(error_text([&] { xxt(tensor({})); }), "[xxt] expected a matrix, got shape []");
  EXPECT_EQ(error_text([&] { xxt(tensor({2, 3, 4})); }), "[xxt] expected a matrix, got shape [2, 3, 4]");
  for (DType dtype : {DType::bf16, DType::u8, DType::i64})
    EXPECT_EQ(error_text([&] {
                xxt(tensor({2, 3}, dtype));
              }),
              fmt::format("[xxt] expected dtype f32 or f64 or i32, got {}", name_of(dtype)));
  EXPECT_EQ(error_text([] { xxt(Tensor()); }), "[xxt] expected a tensor, got an undefined one");
}

}  // namespace
}  // namespace tandem
