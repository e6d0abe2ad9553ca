#include "tandem/ops/correlate.h"

#include <fmt/format.h>

#include "tests/ops/version_case.h"

namespace tandem {
namespace {

// Σ|products| of every pixel.
std::vector<double> magnitudes_of(const Tensor& image, const Tensor& kernel) {
  return values_of(correlate(absolute(image), absolute(kernel), Version::reference));
}

class CorrelateGolden : public testing::TestWithParam<StoredCase> {};

// f64 within 1e-12, f32 within 1e-5 of Σ|products|.
TEST_P(CorrelateGolden, MatchesSciPy) {
  const StoredCase& one = GetParam();
  const Tensor image = one.tensor("image"), kernel = one.tensor("kernel");
  const Tensor actual = correlate(image, kernel, one.version);
  EXPECT_EQ(actual.shape(), image.shape());
  EXPECT_EQ(actual.dtype(), image.dtype());
  EXPECT_EQ(actual.device(), one.device());
  expect_within(actual, one.stored.array("expected").values<double>(), magnitudes_of(image, kernel),
                sum_tolerance(image.dtype()));
}

INSTANTIATE_TEST_SUITE_P(Cases, CorrelateGolden, testing::ValuesIn(stored_cases("correlation")),
                         stored_case_name);

class CorrelateTest : public testing::TestWithParam<VersionCase> {
 protected:
  Tensor random(const Shape& shape, std::uint32_t seed) const {
    return random_tensor(shape, GetParam().dtype, GetParam().device(), seed);
  }
  // Checks that the result matches `reference` in f64 within the tolerance and that every pixel is written.
  void expect_matches_reference(const Tensor& image, const Tensor& kernel) const {
    SCOPED_TRACE(image.shape().to_string() + " by " + kernel.shape().to_string());
    const auto expected = values_of(correlate(as_f64(image), as_f64(kernel), Version::reference));
    poison_next(image.shape(), image.dtype(), image.device());
    const Tensor actual = correlate(image, kernel, GetParam().version);
    EXPECT_EQ(actual.shape(), image.shape());
    EXPECT_EQ(actual.device(), image.device());
    EXPECT_TRUE(actual.is_contiguous());
    expect_within(actual, expected, magnitudes_of(image, kernel), sum_tolerance(image.dtype()));
  }
  void expect_all_match_reference(const std::vector<Shape>& images, const std::vector<Shape>& kernels) const {
    std::uint32_t seed = 0;
    for (const Shape& image : images)
      for (const Shape& kernel : kernels) {
        const std::uint32_t first = ++seed, second = ++seed;
        expect_matches_reference(random(image, first), random(kernel, second));
      }
  }
};

// Some kernels are larger than most of these images.
TEST_P(CorrelateTest, SmallImages_MatchReference) {
  expect_all_match_reference(
      {{0, 0}, {0, 5}, {5, 0}, {1, 1}, {1, 2}, {2, 1}, {3, 3}, {5, 7}, {4, 33}, {33, 4}, {16, 64}, {19, 66}},
      {{1, 1}, {1, 2},   {2, 1},  {2, 2},  {3, 3},  {4, 4},  {3, 5},   {5, 3},
       {5, 5}, {6, 6},   {7, 7},  {8, 8},  {8, 2},  {9, 9},  {1, 9},   {9, 1},
       {9, 2}, {10, 10}, {11, 3}, {3, 40}, {40, 3}, {16, 5}, {17, 17}, {65, 67}});
}

// Longer than a row of threads or a strip in one direction.
TEST_P(CorrelateTest, LongImages_MatchReference) {
  expect_all_match_reference(
      {{1, 5000}, {5000, 1}, {2, 1025}, {700, 3}},
      {{1, 1}, {2, 2}, {3, 3}, {4, 3}, {5, 5}, {7, 7}, {9, 9}, {10, 10}, {11, 3}, {3, 40}});
}

// Around whole vectors, tiles and strips; more than one strip in both directions.
TEST_P(CorrelateTest, LargeImages_MatchReference) {
  expect_all_match_reference(
      {{127, 129}, {128, 128}, {129, 127}, {255, 257}, {64, 512}, {70, 530}, {300, 1037}},
      {{1, 1}, {2, 2}, {3, 3}, {5, 5}, {4, 7}, {7, 7}, {9, 9}, {11, 3}});
  expect_all_match_reference({{300, 1036}, {257, 255}}, {{3, 3}, {6, 6}, {8, 9}});
  expect_all_match_reference({{129, 260}}, {{10, 10}, {3, 40}, {33, 33}});
}

TEST_P(CorrelateTest, EvenKernel_IsAnchoredAfterTheCenter) {
  const Tensor image = tensor_of({1, 2, 3, 4}, {2, 2}, GetParam().dtype, GetParam().device());
  const Tensor kernel = tensor_of({1, 10, 100, 1000}, {2, 2}, GetParam().dtype, GetParam().device());
  expect_values(correlate(image, kernel, GetParam().version), {1000, 2100, 3010, 4321}, 0);
}

TEST_P(CorrelateTest, StridedOperands_MatchReference) {
  const Tensor image = random({131, 70}, 1), kernel = random({5, 8}, 2);
  expect_matches_reference(image.transpose(), kernel);
  expect_matches_reference(image, kernel.transpose());
  expect_matches_reference(image.transpose(), kernel.transpose());
  expect_matches_reference(image.slice(1, 3, 66), kernel.slice(1, 1, 4));
  expect_matches_reference(image.slice(0, 1, 130), kernel.slice(0, 1, 4));
  expect_matches_reference(random({1, 70}, 3).broadcast_view({40, 70}),
                           random({1, 1}, 4).broadcast_view({3, 3}));
}

TEST_P(CorrelateTest, RepeatedWithAnyThreadCount_GivesSameBits) {
  for (const auto& [shape, kernel_shape] : std::vector<std::pair<Shape, Shape>>{
           {{301, 517}, {3, 3}}, {{77, 300}, {7, 5}}, {{50, 130}, {11, 3}}}) {
    SCOPED_TRACE(kernel_shape.to_string());
    const Tensor image = random(shape, 1), kernel = random(kernel_shape, 2);
    const auto once = bits_of(correlate(image, kernel, GetParam().version));
    EXPECT_EQ(bits_of(correlate(image, kernel, GetParam().version)), once);
    for (const int threads : {1, 2, 3, 7}) {
      const ScopedThreadCount scope(threads);
      EXPECT_EQ(bits_of(correlate(image, kernel, GetParam().version)), once) << threads << " threads";
    }
    const ThreadLimit one(1);
    EXPECT_EQ(bits_of(correlate(image, kernel, GetParam().version)), once);
  }
}

TEST_P(CorrelateTest, ExplicitVersion_HasNoGradient) {
  Tensor image = random({3, 3}, 1).set_requires_grad();
  const Tensor kernel = random({2, 2}, 2);
  EXPECT_FALSE(correlate(image, kernel, GetParam().version).requires_grad());
  EXPECT_TRUE(correlate(image, kernel).requires_grad());
}

INSTANTIATE_TEST_SUITE_P(Versions, CorrelateTest, testing::ValuesIn(version_cases({DType::f32, DType::f64})),
                         version_case_name);

class CorrelateGradient : public testing::TestWithParam<Device> {
 protected:
  Tensor random(const Shape& shape, std::uint32_t seed) const {
    return random_tensor(shape, DType::f64, GetParam(), seed);
  }
};

TEST_P(CorrelateGradient, MatchesCentralDifferences) {
  for (const auto& [image, kernel] : std::vector<std::pair<Shape, Shape>>{{{1, 1}, {1, 1}},
                                                                          {{4, 5}, {3, 3}},
                                                                          {{5, 4}, {2, 2}},
                                                                          {{4, 4}, {4, 3}},
                                                                          {{3, 6}, {1, 2}},
                                                                          {{2, 3}, {5, 6}},
                                                                          {{1, 7}, {10, 3}}})
    expect_gradients([](const auto& in) { return correlate(in[0], in[1]); },
                     {random(image, 1), random(kernel, 2)});
  expect_gradients([](const auto& in) { return correlate(in[0].transpose(), in[1].slice(1, 1, 3)); },
                   {random({3, 5}, 1), random({2, 4}, 2)});
}

// Correlation is linear in each operand, so ⟨g, correlate(u, k)⟩ = ⟨d image, u⟩ for every u, and likewise for
// the kernel. This checks whole gradients where central differences would take too long.
TEST_P(CorrelateGradient, LargeImages_IsTheAdjoint) {
  for (const auto& [image_shape, kernel_shape] : std::vector<std::pair<Shape, Shape>>{
           {{70, 530}, {3, 3}}, {{129, 127}, {4, 4}}, {{33, 257}, {8, 5}}, {{65, 66}, {12, 3}}}) {
    SCOPED_TRACE(kernel_shape.to_string());
    Tensor image = random(image_shape, 1).set_requires_grad();
    Tensor kernel = random(kernel_shape, 2).set_requires_grad();
    const Tensor g = random(image_shape, 3), u = random(image_shape, 4), v = random(kernel_shape, 5);
    backward(correlate(image, kernel), g);
    const auto dot = [](const Tensor& a, const Tensor& b) { return sum(multiply(a, b)).item<double>(); };
    EXPECT_NEAR(dot(image.grad(), u), dot(g, correlate(u, kernel.detach())), 1e-8);
    EXPECT_NEAR(dot(kernel.grad(), v), dot(g, correlate(image.detach(), v)), 1e-8);
  }
}

TEST_P(CorrelateGradient, F32_MatchesF64) {
  const auto gradients = [&](DType dtype) {
    Tensor image = random_tensor({40, 133}, DType::f32, GetParam(), 1);
    Tensor kernel = random_tensor({6, 3}, DType::f32, GetParam(), 2);
    image = tensor_of(values_of(image), image.shape(), dtype, GetParam()).set_requires_grad();
    kernel = tensor_of(values_of(kernel), kernel.shape(), dtype, GetParam()).set_requires_grad();
    backward(sum(correlate(image, kernel)));
    return std::pair{image.grad(), kernel.grad()};
  };
  const auto [image_f32, kernel_f32] = gradients(DType::f32);
  const auto [image_f64, kernel_f64] = gradients(DType::f64);
  expect_values(image_f32, values_of(image_f64), 1e-5);
  expect_values(kernel_f32, values_of(kernel_f64), 1e-5);
}

TEST_P(CorrelateGradient, OneOperandRequiresGrad_OtherGetsNone) {
  for (const bool to_image : {true, false}) {
    Tensor image = random({4, 4}, 1), kernel = random({3, 3}, 2);
    (to_image ? image : kernel).set_requires_grad();
    backward(sum(correlate(image, kernel)));
    EXPECT_EQ(image.grad().defined(), to_image);
    EXPECT_EQ(kernel.grad().defined(), !to_image);
  }
}

TEST_P(CorrelateGradient, EmptyImage_KernelGradientIsZero) {
  Tensor image = random({0, 4}, 1).set_requires_grad(), kernel = random({2, 3}, 2).set_requires_grad();
  poison_next(kernel.shape(), DType::f64, GetParam());
  backward(sum(correlate(image, kernel)));
  EXPECT_EQ(image.grad().shape(), (Shape{0, 4}));
  expect_values(kernel.grad(), {0, 0, 0, 0, 0, 0}, 0);
}

TEST_P(CorrelateGradient, WrongDevice_ErrorNamesDevices) {
  const Tensor here = random({3, 3}, 1);
  for (Version version : unsupported_versions(GetParam()))
    EXPECT_EQ(error_text([&] { correlate(here, here, version); }),
              fmt::format("[correlate] expected a version that runs on {}, got {}", GetParam().to_string(),
                          name_of(version)));
  if (!GetParam().is_cuda()) return;
  EXPECT_EQ(error_text([&] { correlate(here, here.cpu()); }),
            "[correlate] expected all tensors on the same device, got cuda:0 and cpu");
  EXPECT_EQ(error_text([&] { correlate(here.cpu(), here); }),
            "[correlate] expected all tensors on the same device, got cpu and cuda:0");
}

INSTANTIATE_TEST_SUITE_P(Devices, CorrelateGradient, testing::ValuesIn(test_devices()), device_name);

TEST(Correlate, BadOperands_ErrorNamesValues) {
  const auto tensor = [](const Shape& shape, DType dtype = DType::f32) {
    return random_tensor(shape, dtype, cpu_device, 1, 0, 9);
  };
  const Tensor image = tensor({4, 5});
  EXPECT_EQ(error_text([&] {
              correlate(image, tensor({3, 3}, DType::f64));
            }),
            "[correlate] expected tensors of one dtype, got f32 and f64");
  for (DType dtype : {DType::i32, DType::u8, DType::i64, DType::bf16})
    EXPECT_EQ(error_text([&] {
                correlate(tensor({4, 5}, dtype), tensor({3, 3}, dtype));
              }),
              fmt::format("[correlate] expected dtype f32 or f64, got {}", name_of(dtype)));
  const std::string matrices = "[correlate] expected two matrices, got shapes ";
  EXPECT_EQ(error_text([&] { correlate(tensor({4}), tensor({3, 3})); }), matrices + "[4] and [3, 3]");
  EXPECT_EQ(error_text([&] { correlate(image, tensor({3})); }), matrices + "[4, 5] and [3]");
  EXPECT_EQ(error_text([&] {
              correlate(tensor({1, 4, 5}), tensor({3, 3}));
            }),
            matrices + "[1, 4, 5] and [3, 3]");
  for (const Shape& empty : std::vector<Shape>{{0, 0}, {0, 3}, {3, 0}})
    EXPECT_EQ(error_text([&] { correlate(image, tensor(empty)); }),
              "[correlate] expected a kernel of at least 1x1, got " + empty.to_string());
  EXPECT_EQ(error_text([&] { correlate(Tensor(), image); }),
            "[correlate] expected a tensor, got an undefined one");
}

}  // namespace
}  // namespace tandem
