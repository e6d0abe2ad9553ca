// Depthwise convolution: conv2d() with as many groups as channels and filters.
#include <fmt/format.h>

#include <cstring>

#include "tandem/core/parallel.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/conv/conv2d.h"
#include "tandem/ops/conv/prepacked_conv.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

struct DepthwiseCase {
  std::int64_t images, height, width, channels;
  YX kernel, stride, padding, dilation = {1, 1};

  std::string name() const {
    return fmt::format("{}x{}x{}x{} kernel {}x{} stride {}x{} padding {}x{} dilation {}x{}", images, height,
                       width, channels, kernel.y, kernel.x, stride.y, stride.x, padding.y, padding.x,
                       dilation.y, dilation.x);
  }
  Conv2dOptions options() const {
    return {.window = {.stride = stride, .padding = padding, .dilation = dilation}, .groups = channels};
  }
};

// Channels around the widths of vectors and of chunks of channels; images smaller than the kernel.
std::vector<DepthwiseCase> depthwise_cases() {
  std::vector<DepthwiseCase> cases;
  for (const std::int64_t kernel : {3, 5})
    for (const std::int64_t stride : {1, 2}) {
      const YX half{kernel / 2, kernel / 2};
      for (const std::int64_t channels : {2, 3, 8, 13, 16, 24, 40, 64, 72, 131})
        cases.push_back({2, 9, 10, channels, kernel, stride, half});
      for (const std::int64_t size : {1, 2, 3, 4, 7, 8, 15})
        cases.push_back({3, size, size + 1, 8, kernel, stride, half});
    }
  cases.push_back({1, 9, 8, 24, {3, 3}, {1, 1}, {0, 0}});
  cases.push_back({2, 9, 8, 5, {1, 1}, {1, 1}, {0, 0}});
  cases.push_back({1, 9, 8, 8, {3, 5}, {2, 1}, {1, 2}});
  cases.push_back({1, 13, 12, 8, {7, 7}, {1, 1}, {3, 3}});
  cases.push_back({1, 9, 11, 16, {3, 3}, {1, 1}, {2, 2}, {2, 2}});
  cases.push_back({1, 9, 11, 16, {3, 3}, {3, 2}, {2, 3}, {1, 2}});
  cases.push_back({1, 8, 8, 4, {2, 4}, {2, 2}, {1, 1}});
  return cases;
}

// The definition, by plain loops.
struct Expected {
  std::vector<double> y, dx, dweight;
};

template <class F>
void for_each_product(const DepthwiseCase& c, YX out, F&& f) {
  for (std::int64_t image = 0; image < c.images; ++image)
    for (std::int64_t y = 0; y < out.y; ++y)
      for (std::int64_t x = 0; x < out.x; ++x)
        for (std::int64_t ky = 0; ky < c.kernel.y; ++ky)
          for (std::int64_t kx = 0; kx < c.kernel.x; ++kx) {
            const std::int64_t in_y = y * c.stride.y - c.padding.y + ky * c.dilation.y;
            const std::int64_t in_x = x * c.stride.x - c.padding.x + kx * c.dilation.x;
            if (in_y < 0 || in_y >= c.height || in_x < 0 || in_x >= c.width) continue;
            for (std::int64_t channel = 0; channel < c.channels; ++channel)
              f(static_cast<std::size_t>(((image * out.y + y) * out.x + x) * c.channels + channel),
                static_cast<std::size_t>(((image * c.height + in_y) * c.width + in_x) * c.channels + channel),
                static_cast<std::size_t>((channel * c.kernel.y + ky) * c.kernel.x + kx));
          }
}

Expected expected_of(const DepthwiseCase& c, YX out, const std::vector<double>& x,
                     const std::vector<double>& weight, const std::vector<double>& dy) {
  Expected result{std::vector<double>(dy.size()), std::vector<double>(x.size()),
                  std::vector<double>(weight.size())};
  for_each_product(c, out, [&](std::size_t to, std::size_t from, std::size_t tap) {
    result.y[to] += x[from] * weight[tap];
    result.dx[from] += dy[to] * weight[tap];
    result.dweight[tap] += dy[to] * x[from];
  });
  return result;
}

class DepthwiseTest : public OpTest {
 protected:
  Tensor random(const Shape& shape, std::uint32_t seed) const {
    return random_tensor(shape, dtype(), device(), seed, -1, 1);
  }
};

TEST_P(DepthwiseTest, OutputAndGradients_EqualPlainLoops) {
  for (const DepthwiseCase& c : depthwise_cases()) {
    SCOPED_TRACE(c.name());
    Tensor x = random({c.images, c.height, c.width, c.channels}, 1).set_requires_grad();
    Tensor weight = random({c.channels, c.kernel.y, c.kernel.x, 1}, 2).set_requires_grad();
    const Tensor y = conv2d(x, weight, {}, c.options());
    const Tensor dy = random(y.shape(), 3);
    backward(y, dy);
    const Expected expected =
        expected_of(c, {y.size(1), y.size(2)}, values_of(x), values_of(weight), values_of(dy));
    expect_values(y, expected.y, tolerance());
    expect_values(x.grad(), expected.dx, tolerance());
    expect_values(weight.grad(), expected.dweight, tolerance());
    if (HasFailure()) return;
  }
}

TEST_P(DepthwiseTest, Prepacked_AppliesItsEpilogue) {
  for (const DepthwiseCase& c : depthwise_cases()) {
    SCOPED_TRACE(c.name());
    const Tensor x = random({c.images, c.height, c.width, c.channels}, 1);
    const Tensor weight = random({c.channels, c.kernel.y, c.kernel.x, 1}, 2), bias = random({c.channels}, 4);
    const detail::PrepackedConv2d prepacked = detail::prepack_conv2d(weight, bias, c.options(), dtype());
    const Tensor plain = detail::prepacked_conv2d(prepacked, x);
    const Tensor residual = random(plain.shape(), 3);
    std::vector<double> expected =
        expected_of(c, {plain.size(1), plain.size(2)}, values_of(x), values_of(weight), values_of(residual))
            .y;
    const std::vector<double> shift = values_of(bias), added = values_of(residual);
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] += shift[i % static_cast<std::size_t>(c.channels)];
    expect_values(plain, expected, tolerance());
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += added[i];
    expect_values(detail::prepacked_conv2d(prepacked, x, residual), expected, tolerance());
    const auto activated = [&](FusedActivation activation, const auto& function) {
      std::vector<double> values;
      for (const double value : expected) values.push_back(function(value));
      expect_values(detail::prepacked_conv2d(prepacked, x, residual, activation), values, tolerance());
    };
    activated(FusedActivation::relu, [](double value) { return std::max(value, 0.0); });
    activated(FusedActivation::silu, [](double value) { return value / (1 + std::exp(-value)); });
    activated(FusedActivation::hardswish,
              [](double value) { return value * std::min(std::max(value + 3, 0.0), 6.0) / 6; });
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DepthwiseTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

// With several tiles of rows and chunks of channels, and with as many threads as there are rows.
TEST(DepthwiseBf16, OnCpu_IsF32Rounded) {
  const std::vector<DepthwiseCase> cases{{2, 70, 61, 72, {3, 3}, {1, 1}, {1, 1}},
                                         {1, 90, 33, 131, {5, 5}, {2, 2}, {2, 2}},
                                         {1, 64, 40, 70, {3, 3}, {3, 2}, {2, 1}, {2, 2}},
                                         {1, 9, 7, 16, {1, 1}, {2, 2}, {0, 0}}};
  const int threads = thread_count();
  for (const DepthwiseCase& c : cases) {
    SCOPED_TRACE(c.name());
    const auto random = [](const Shape& shape, std::uint32_t seed) {
      return random_tensor(shape, DType::bf16, cpu_device, seed, -1, 1);
    };
    const Tensor images = random({c.images, c.height, c.width, c.channels}, 1),
                 weight = random({c.channels, c.kernel.y, c.kernel.x, 1}, 2), bias = random({c.channels}, 4);
    Tensor wide = cast(images, DType::f32).set_requires_grad();
    const Tensor expected = conv2d(wide, cast(weight, DType::f32), cast(bias, DType::f32), c.options());
    const Tensor dy = random(expected.shape(), 3);
    backward(expected, cast(dy, DType::f32));
    const detail::PrepackedConv2d packed = detail::prepack_conv2d(weight, bias, c.options(), DType::bf16),
                                  wide_packed = detail::prepack_conv2d(cast(weight, DType::f32), bias,
                                                                       c.options(), DType::f32);
    const Tensor activated = detail::prepacked_conv2d(wide_packed, wide.detach(), cast(dy, DType::f32),
                                                      FusedActivation::hardswish);
    for (const int count : {1, 3, 90}) {
      set_thread_count(count);
      Tensor x = images.detach().set_requires_grad();
      const Tensor y = conv2d(x, weight, bias, c.options());
      backward(y, dy);
      EXPECT_EQ(values_of(y), values_of(cast(expected, DType::bf16)));
      EXPECT_EQ(values_of(x.grad()), values_of(cast(wide.grad(), DType::bf16)));
      EXPECT_EQ(values_of(detail::prepacked_conv2d(packed, x.detach(), dy, FusedActivation::hardswish)),
                values_of(cast(activated, DType::bf16)));
    }
    set_thread_count(threads);
  }
}

class DepthwiseOnDevice : public testing::TestWithParam<Device> {};

TEST_P(DepthwiseOnDevice, Bf16Images_WithF32Weights_GiveF32WeightGradients) {
  const DepthwiseCase c{4, 14, 14, 48, {5, 5}, {1, 1}, {2, 2}};
  Tensor x = random_tensor({4, 14, 14, 48}, DType::bf16, GetParam(), 1, -1, 1).set_requires_grad();
  Tensor weight = random_tensor({48, 5, 5, 1}, DType::f32, GetParam(), 2, -1, 1).set_requires_grad();
  const Tensor y = conv2d(x, weight, {}, c.options());
  EXPECT_EQ(y.dtype(), DType::bf16);
  const Tensor dy = random_tensor(y.shape(), DType::bf16, GetParam(), 3, -1, 1);
  backward(y, dy);
  EXPECT_EQ(weight.grad().dtype(), DType::f32);
  const Expected expected =
      expected_of(c, {14, 14}, values_of(x), values_of(cast(weight.detach(), DType::bf16)), values_of(dy));
  expect_values(y, expected.y, 1e-2);
  expect_values(x.grad(), expected.dx, 1e-2);
  expect_values(weight.grad(), expected.dweight, 1e-5);  // sums of f32
}

// The sums of a batch that takes many blocks, twice: no order may depend on the run.
TEST_P(DepthwiseOnDevice, WeightGradientOfALargeBatch_HasTheSameBitsEachTime) {
  for (const std::int64_t kernel : {3, 5}) {
    const DepthwiseCase c{16, 56, 56, 24, kernel, {2, 2}, kernel / 2};
    const Tensor x = random_tensor({16, 56, 56, 24}, DType::f32, GetParam(), 1, -1, 1);
    const Tensor dy = random_tensor({16, 28, 28, 24}, DType::f32, GetParam(), 2, -1, 1);
    const auto gradient = [&] {
      Tensor weight = random_tensor({24, kernel, kernel, 1}, DType::f32, GetParam(), 3).set_requires_grad();
      backward(conv2d(x, weight, {}, c.options()), dy);
      return weight.grad();
    };
    const std::vector<double> first = values_of(gradient());
    EXPECT_EQ(values_of(gradient()), first);
    const std::vector<double> zeros(24 * static_cast<std::size_t>(kernel * kernel));
    expect_values(gradient(), expected_of(c, {28, 28}, values_of(x), zeros, values_of(dy)).dweight, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DepthwiseOnDevice, testing::ValuesIn(test_devices()), device_name);

TEST(Depthwise, Bits_DoNotDependOnThreads) {
  for (const DepthwiseCase& c : depthwise_cases()) {
    SCOPED_TRACE(c.name());
    const auto results = [&](int threads) {
      set_thread_count(threads);
      Tensor x = random_tensor({c.images, c.height, c.width, c.channels}, DType::f32, cpu_device, 1);
      Tensor weight = random_tensor({c.channels, c.kernel.y, c.kernel.x, 1}, DType::f32, cpu_device, 2);
      x.set_requires_grad();
      weight.set_requires_grad();
      const Tensor y = conv2d(x, weight, {}, c.options());
      backward(y, random_tensor(y.shape(), DType::f32, cpu_device, 3));
      set_thread_count(usable_cpus());
      return std::vector{values_of(y), values_of(x.grad()), values_of(weight.grad())};
    };
    EXPECT_EQ(results(1), results(5));
  }
}

}  // namespace
}  // namespace tandem
