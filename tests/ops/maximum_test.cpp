#include "tandem/ops/maximum.h"

#include "tests/ops/version_case.h"

namespace tandem {
namespace {

class MaximumGolden : public testing::TestWithParam<StoredCase> {};

TEST_P(MaximumGolden, MatchesNumPy) {
  const StoredCase& one = GetParam();
  const Tensor actual = maximum(one.tensor("a"), one.tensor("b"), one.version);
  EXPECT_EQ(actual.device(), one.device());
  expect_same_values(actual, one.tensor("expected"));
}

INSTANTIATE_TEST_SUITE_P(Cases, MaximumGolden, testing::ValuesIn(stored_cases("maximum")), stored_case_name);

class MaximumTest : public testing::TestWithParam<VersionCase> {
 protected:
  Tensor random(const Shape& shape, std::uint32_t seed) const {
    const double low = GetParam().dtype == DType::u8 ? 0 : -100;
    return random_tensor(shape, GetParam().dtype, GetParam().device(), seed, low, 100);
  }
  // Checks that the result equals `reference` on dense copies and that every element is written.
  void expect_matches_reference(const Tensor& a, const Tensor& b) const {
    SCOPED_TRACE(a.shape().to_string() + " with " + b.shape().to_string());
    const Shape shape = broadcast_shapes(a.shape(), b.shape(), "test");
    const Tensor wide_a = a.cpu().broadcast_view(shape).clone();
    const Tensor wide_b = b.cpu().broadcast_view(shape).clone();
    const Tensor expected = maximum(wide_a, wide_b, Version::reference);
    poison_next(shape, a.dtype(), a.device());
    const Tensor actual = maximum(a, b, GetParam().version);
    EXPECT_EQ(actual.device(), a.device());
    EXPECT_TRUE(actual.is_contiguous());
    expect_same_values(actual, expected);
  }
};

TEST_P(MaximumTest, ReturnsTheLargerOfEachPair) {
  const DType dtype = GetParam().dtype;
  const Device device = GetParam().device();
  const Tensor a = tensor_of({1, 5, 3, 0, 9, 7}, {2, 3}, dtype, device);
  const Tensor b = tensor_of({2, 4, 3, 1, 8, 100}, {2, 3}, dtype, device);
  expect_values(maximum(a, b, GetParam().version), {2, 5, 3, 1, 9, 100}, 0);
}

TEST_P(MaximumTest, AnyShape_MatchesReference) {
  std::uint32_t seed = 0;
  for (const Shape& shape : std::vector<Shape>{
           {},         {0},       {1},         {7},        {0, 5},     {5, 0},     {0, 0},     {1, 1},
           {3, 5},     {1, 5000}, {5000, 1},   {127, 128}, {129, 127}, {255, 257}, {257, 255}, {64, 1023},
           {64, 1025}, {70, 530}, {300, 1037}, {3, 0, 2},  {2, 3, 4},  {5, 7, 11}, {100003}}) {
    const std::uint32_t first = ++seed, second = ++seed;
    expect_matches_reference(random(shape, first), random(shape, second));
  }
}

TEST_P(MaximumTest, BroadcastShapes_MatchReference) {
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{{{17, 5}, {5}},
                                                                 {{5}, {17, 5}},
                                                                 {{17, 5}, {17, 1}},
                                                                 {{4, 1}, {1, 7}},
                                                                 {{}, {3, 4}},
                                                                 {{2, 3, 4}, {3, 1}},
                                                                 {{257, 1}, {1, 259}},
                                                                 {{300, 1037}, {1037}},
                                                                 {{300, 1037}, {300, 1}},
                                                                 {{1, 3}, {0, 3}},
                                                                 {{2, 0, 3}, {1, 3}}})
    expect_matches_reference(random(a, 1), random(b, 2));
}

TEST_P(MaximumTest, StridedOperands_MatchReference) {
  const Tensor a = random({131, 70}, 1), b = random({70, 131}, 2);
  expect_matches_reference(a.transpose(), b);
  expect_matches_reference(b, a.transpose());
  expect_matches_reference(a.transpose(), b.transpose().transpose());
  expect_matches_reference(a.transpose(), a.transpose());
  expect_matches_reference(a.slice(1, 3, 40), b.transpose().slice(1, 5, 42));
  expect_matches_reference(a.slice(0, 7, 130), a.slice(0, 1, 124));
  expect_matches_reference(random({4, 5, 6}, 3).permute({2, 0, 1}), random({6, 4, 5}, 4));
}

TEST_P(MaximumTest, NanPropagates) {
  if (!is_floating(GetParam().dtype)) {  // integers: check the limits instead
    const double top = GetParam().dtype == DType::u8 ? 255 : 2147483647;
    const Tensor limit = tensor_of({top, 0}, {2}, GetParam().dtype, GetParam().device());
    const Tensor other = tensor_of({0, top}, {2}, GetParam().dtype, GetParam().device());
    expect_values(maximum(limit, other, GetParam().version), {top, top}, 0);
    return;
  }
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double inf = std::numeric_limits<double>::infinity();
  std::vector<double> left(1000, 1), right(1000, 2), expected(1000, 2);
  for (const std::size_t i : {0, 31, 500, 999}) left[i] = expected[i] = nan;
  for (const std::size_t i : {1, 32, 501, 998}) right[i] = expected[i] = nan;
  left[700] = expected[700] = inf;
  right[701] = -inf, expected[701] = 1;
  const Tensor a = tensor_of(left, {40, 25}, GetParam().dtype, GetParam().device());
  const Tensor b = tensor_of(right, {40, 25}, GetParam().dtype, GetParam().device());
  expect_values(maximum(a, b, GetParam().version), expected, 0);
}

TEST_P(MaximumTest, RepeatedWithAnyThreadCount_GivesSameBits) {
  const Tensor a = random({300, 1037}, 1), b = random({300, 1037}, 2);
  const auto once = bits_of(maximum(a, b, GetParam().version));
  EXPECT_EQ(bits_of(maximum(a, b, GetParam().version)), once);
  {
    const ScopedThreadCount scope(7);
    EXPECT_EQ(bits_of(maximum(a, b, GetParam().version)), once);
  }
  const ThreadLimit one(1);
  EXPECT_EQ(bits_of(maximum(a, b, GetParam().version)), once);
}

TEST_P(MaximumTest, ExplicitVersion_HasNoGradient) {
  if (!is_floating(GetParam().dtype)) {
    EXPECT_FALSE(maximum(random({3}, 1), random({3}, 2)).requires_grad());
    return;
  }
  Tensor a = random({3}, 1).set_requires_grad();
  EXPECT_FALSE(maximum(a, a, GetParam().version).requires_grad());
  EXPECT_TRUE(maximum(a, a).requires_grad());
}

INSTANTIATE_TEST_SUITE_P(Versions, MaximumTest,
                         testing::ValuesIn(version_cases({DType::f32, DType::f64, DType::bf16, DType::u8,
                                                          DType::i32, DType::i64})),
                         version_case_name);

class MaximumGradient : public testing::TestWithParam<Device> {};

TEST_P(MaximumGradient, MatchesCentralDifferences) {
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{{{3, 4}, {3, 4}},
                                                                 {{3, 4}, {4}},
                                                                 {{4}, {3, 4}},
                                                                 {{3, 1}, {1, 4}},
                                                                 {{}, {2, 2}},
                                                                 {{2, 3, 2}, {3, 1}}})
    expect_gradients(
        [](const auto& in) { return maximum(in[0], in[1]); },
        {random_tensor(a, DType::f64, GetParam(), 1), random_tensor(b, DType::f64, GetParam(), 2)});
  expect_gradients(
      [](const auto& in) { return maximum(in[0].transpose(), in[1].slice(1, 1, 4)); },
      {random_tensor({3, 4}, DType::f64, GetParam(), 1), random_tensor({4, 5}, DType::f64, GetParam(), 2)});
}

// The values are those of torch.maximum.
TEST_P(MaximumGradient, EqualOperands_SplitTheGradient) {
  for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    Tensor a = tensor_of({1, 2, 3, 4}, {4}, dtype, GetParam()).set_requires_grad();
    Tensor b = tensor_of({1, 5, 3, 0}, {4}, dtype, GetParam()).set_requires_grad();
    backward(maximum(a, b), tensor_of({1, 2, 3, 4}, {4}, dtype, GetParam()));
    expect_values(a.grad(), {0.5, 0, 1.5, 4}, 0);
    expect_values(b.grad(), {0.5, 2, 1.5, 0}, 0);
  }
}

TEST_P(MaximumGradient, BroadcastOperand_SumsItsUses) {
  Tensor a = tensor_of({1, 2, 3, 1, 0, 2}, {2, 3}, DType::f64, GetParam()).set_requires_grad();
  Tensor b = tensor_of({2, 1}, {2, 1}, DType::f64, GetParam()).set_requires_grad();
  backward(sum(maximum(a, b)));
  expect_values(a.grad(), {0, 0.5, 1, 0.5, 0, 1}, 0);
  expect_values(b.grad(), {1.5, 1.5}, 0);
}

TEST_P(MaximumGradient, SameTensorTwice_GetsTheWholeGradient) {
  Tensor a = tensor_of({3, -1}, {2}, DType::f64, GetParam()).set_requires_grad();
  backward(sum(maximum(a, a)));
  expect_values(a.grad(), {1, 1}, 0);
}

TEST_P(MaximumGradient, OneOperandRequiresGrad_OtherGetsNone) {
  Tensor a = random_tensor({3}, DType::f64, GetParam(), 1).set_requires_grad();
  const Tensor b = random_tensor({3}, DType::f64, GetParam(), 2);
  backward(sum(maximum(b, a)));
  EXPECT_TRUE(a.grad().defined());
  EXPECT_FALSE(b.grad().defined());
}

TEST_P(MaximumGradient, EmptyOperand_GradientIsEmpty) {
  Tensor a = random_tensor({0, 3}, DType::f64, GetParam(), 1).set_requires_grad();
  Tensor b = random_tensor({3}, DType::f64, GetParam(), 2).set_requires_grad();
  backward(sum(maximum(a, b)));
  EXPECT_EQ(a.grad().shape(), (Shape{0, 3}));
  expect_values(b.grad(), {0, 0, 0}, 0);
}

TEST_P(MaximumGradient, WrongDevice_ErrorNamesDevices) {
  const Tensor here = random_tensor({3}, DType::f32, GetParam(), 1);
  const std::string name = GetParam().to_string();
  for (Version version : unsupported_versions(GetParam()))
    EXPECT_EQ(error_text([&] { maximum(here, here, version); }),
              "[maximum] expected a version that runs on " + name + ", got " + std::string(name_of(version)));
  if (!GetParam().is_cuda()) return;
  EXPECT_EQ(error_text([&] { maximum(here, here.cpu()); }),
            "[maximum] expected all tensors on the same device, got cuda:0 and cpu");
  EXPECT_EQ(error_text([&] { maximum(here.cpu(), here); }),
            "[maximum] expected all tensors on the same device, got cpu and cuda:0");
}

INSTANTIATE_TEST_SUITE_P(Devices, MaximumGradient, testing::ValuesIn(test_devices()), device_name);

TEST(Maximum, BadOperands_ErrorNamesValues) {
  const Tensor a = random_tensor({2, 3}, DType::f32, cpu_device, 1);
  EXPECT_EQ(error_text([&] { maximum(a, random_tensor({4}, DType::f32, cpu_device, 2)); }),
            "[maximum] expected shapes that broadcast together, got [2, 3] and [4]");
  EXPECT_EQ(error_text([&] {
              maximum(a, random_tensor({2, 3}, DType::i32, cpu_device, 2));
            }),
            "[maximum] expected tensors of one dtype, got f32 and i32");
  EXPECT_EQ(error_text([&] { maximum(Tensor(), a); }), "[maximum] expected a tensor, got an undefined one");
}

}  // namespace
}  // namespace tandem
