#include "tandem/ops/conv/pool.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <optional>

#include "tandem/core/parallel.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/conv/pool_kernel.h"
#include "tandem/ops/reduce.h"
#include "tandem/tensor/tape.h"
#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

YX pair_of(const nlohmann::json& values) {
  return {values.at(0).get<std::int64_t>(), values.at(1).get<std::int64_t>()};
}

Window window_of(const golden::Case& one) {
  return {.stride = pair_of(one.params.at("stride")),
          .padding = pair_of(one.params.at("padding")),
          .dilation = pair_of(one.params.at("dilation"))};
}

class PoolGolden : public OpTest {};

TEST_P(PoolGolden, OutputAndGradients_EqualPyTorch) {
  using Pool = Tensor (*)(const Tensor&, YX, const Window&);
  for (const auto& [name, pool] :
       {std::pair<const char*, Pool>{"max_pool2d", max_pool2d}, {"avg_pool2d", avg_pool2d}})
    expect_golden(
        name, dtype(), device(), tolerance(),
        [pool = pool](const golden::Case& one, const std::vector<Tensor>& in) {
          return pool(in[0], pair_of(one.params.at("kernel")), window_of(one));
        },
        "conv");
  expect_golden(
      "adaptive_avg_pool2d", dtype(), device(), tolerance(),
      [](const golden::Case& one, const std::vector<Tensor>& in) {
        return adaptive_avg_pool2d(in[0], pair_of(one.params.at("out")));
      },
      "conv");
}

// Not in bf16: rounding would create ties.
INSTANTIATE_TEST_SUITE_P(Devices, PoolGolden, testing::ValuesIn(op_cases({DType::f32, DType::f64})),
                         op_case_name);

class PoolTest : public OpTest {};

// Windows of 2×2 and 3×3 have CUDA kernels of their own, and those that do not overlap, and 3×3 at every
// second pixel, others for the gradient. Few distinct values make ties.
TEST_P(PoolTest, MaxPoolOfSmallWindows_EqualsDefinition) {
  for (const auto& [height, width, channels, size, stride, padding] :
       {std::array<std::int64_t, 6>{9, 12, 16, 3, 2, 1},
        {5, 3, 5, 3, 1, 1},
        {8, 7, 16, 3, 2, 1},
        {9, 12, 8, 3, 2, 0},
        {6, 5, 3, 3, 2, 0},
        {3, 3, 8, 3, 2, 0},
        {1, 1, 16, 3, 2, 1},
        {33, 40, 24, 3, 2, 1},
        {4, 5, 41, 3, 2, 1},
        {3, 3, 8, 3, 1, 0},
        {1, 2, 3, 3, 2, 1},
        {4, 300, 8, 3, 3, 1},
        {7, 31, 16, 2, 2, 0},
        {31, 6, 24, 2, 2, 0},
        {2, 3, 5, 2, 2, 0},
        {5, 4, 8, 2, 1, 1},
        {3, 3, 64, 3, 3, 0},
        {8, 11, 3, 3, 3, 0}}) {
    SCOPED_TRACE(fmt::format("{0}x{1}x{2}, {3}x{3}, stride {4}, padding {5}", height, width, channels, size,
                             stride, padding));
    std::vector<double> values(static_cast<std::size_t>(2 * height * width * channels));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 2654435761u % 7) - 3;
    Tensor x = tensor_of(values, {2, height, width, channels}, dtype(), device()).set_requires_grad();
    const Tensor y = max_pool2d(x, {size, size}, {.stride = {stride, stride}, .padding = {padding, padding}});
    std::vector<double> expected, dy, gradient(values.size());
    for (std::int64_t image = 0; image < 2; ++image)
      for (std::int64_t row = 0; row < y.size(1); ++row)
        for (std::int64_t column = 0; column < y.size(2); ++column)
          for (std::int64_t c = 0; c < channels; ++c) {
            std::optional<std::size_t> best;
            for (std::int64_t tap = 0; tap < size * size; ++tap) {
              const std::int64_t in_y = row * stride - padding + tap / size,
                                 in_x = column * stride - padding + tap % size;
              if (in_y < 0 || in_y >= height || in_x < 0 || in_x >= width) continue;
              const auto at =
                  static_cast<std::size_t>(((image * height + in_y) * width + in_x) * channels + c);
              if (!best || values[at] > values[*best]) best = at;
            }
            expected.push_back(values[*best]);
            dy.push_back(static_cast<double>(dy.size() % 5) - 1);
            gradient[*best] += dy.back();
          }
    expect_values(y, expected, 0);
    backward(y, tensor_of(dy, y.shape(), dtype(), device()));
    expect_values(x.grad(), gradient, 0);
    const NoGrad no_grad;
    expect_values(max_pool2d(x, {size, size}, {.stride = {stride, stride}, .padding = {padding, padding}}),
                  expected, 0);
  }
}

// Also without a gradient, where bf16 on CUDA has a kernel of its own; few and many images.
TEST_P(PoolTest, ImageMean_IsF32) {
  for (const Shape& shape :
       {Shape{1, 7, 7, 512}, Shape{3, 5, 4, 20}, Shape{2, 1, 1, 3}, Shape{300, 3, 2, 64}}) {
    Tensor x = random_tensor(shape, dtype(), device(), 1, -1, 1);
    const std::vector<double> values = values_of(x);
    const auto pixels = static_cast<std::size_t>(shape[1] * shape[2]),
               channels = static_cast<std::size_t>(shape[3]);
    std::vector<double> expected(static_cast<std::size_t>(shape[0]) * channels);
    for (std::size_t i = 0; i < values.size(); ++i)
      expected[i / (pixels * channels) * channels + i % channels] += values[i] / static_cast<double>(pixels);
    const Tensor mean = detail::image_mean(x);
    EXPECT_EQ(mean.dtype(), DType::f32);
    EXPECT_EQ(mean.shape(), (Shape{shape[0], shape[3]}));
    const bool is_rounded = dtype() == DType::bf16 && !device().is_cuda();
    expect_values(mean, expected, is_rounded ? 4e-3 : 1e-5);
    x.set_requires_grad();
    expect_values(detail::image_mean(x), expected, dtype() == DType::bf16 ? 4e-3 : 1e-5);
  }
  EXPECT_EQ(detail::image_mean(Tensor::empty({0, 2, 2, 3}, dtype(), device())).shape(), (Shape{0, 3}));
}

TEST_P(PoolTest, MaxPool_NanWins_PaddingNeverDoes) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const Window window{.stride = {2, 2}, .padding = {1, 1}};
  const Tensor x = tensor_of({-5, -inf, nan, 7}, {1, 2, 2, 1}, dtype(), device());
  expect_values(max_pool2d(x, {2, 2}, window), {-5, -inf, nan, 7}, 0);
  expect_values(max_pool2d(x, {2, 2}, {}), {nan}, 0);
  expect_values(max_pool2d(tensor_of({3, -nan, inf}, {1, 1, 3, 1}, dtype(), device()), {1, 3}, {}), {nan}, 0);
  Tensor low = tensor_of({-inf, -inf}, {1, 1, 2, 1}, dtype(), device()).set_requires_grad();
  backward(sum(max_pool2d(low, {1, 2}, {})));
  expect_values(low.grad(), {1, 0}, 0);
}

TEST_P(PoolTest, ViewsAndEmptyBatches_AreAccepted) {
  const Tensor wide = random_tensor({2, 5, 4, 6}, dtype(), device(), 1);
  const Tensor view = wide.slice(3, 1, 4);
  const Window window{.stride = {2, 2}, .padding = {1, 1}};
  expect_values(max_pool2d(view, {3, 3}, window), values_of(max_pool2d(view.clone(), {3, 3}, window)), 0);
  expect_values(avg_pool2d(view, {3, 3}, window), values_of(avg_pool2d(view.clone(), {3, 3}, window)), 0);
  Tensor none = random_tensor({0, 5, 4, 6}, dtype(), device(), 1).set_requires_grad();
  EXPECT_EQ(max_pool2d(none, {3, 3}, window).shape(), (Shape{0, 3, 2, 6}));
  const Tensor y = adaptive_avg_pool2d(none, {2, 2});
  backward(y, Tensor::empty(y.shape(), y.dtype(), y.device()));
  EXPECT_EQ(none.grad().shape(), none.shape());
}

TEST_P(PoolTest, MeanOfImagesAndItsGradient_EqualF64) {
  struct Case {
    std::int64_t images, height, width, channels;
  };
  for (const auto& [images, height, width, channels] :
       {Case{1, 7, 7, 512}, Case{3, 5, 4, 24}, Case{2, 1, 1, 3}, Case{1, 2, 9, 7}, Case{70, 3, 2, 256}}) {
    Tensor x = random_tensor({images, height, width, channels}, dtype(), device(), 1);
    expect_values(adaptive_avg_pool2d(x, {1, 1}), values_of(mean(cast(x, DType::f64), {1, 2})),
                  dtype() == DType::bf16 ? 3e-3 : 1e-6);
    const Tensor dy = random_tensor({images, 1, 1, channels}, dtype(), device(), 2);
    const std::vector<double> gradients = values_of(dy);
    std::vector<double> expected;
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const std::int64_t image = i / (height * width * channels), channel = i % channels;
      expected.push_back(gradients[static_cast<std::size_t>(image * channels + channel)] /
                         static_cast<double>(height * width));
    }
    x.set_requires_grad();
    backward(adaptive_avg_pool2d(x, {1, 1}), dy);
    expect_values(x.grad(), expected, dtype() == DType::bf16 ? 4e-3 : 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, PoolTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

class PoolDevice : public testing::TestWithParam<Device> {};

TEST_P(PoolDevice, Gradients_EqualCentralDifferences) {
  const Tensor x = random_tensor({2, 5, 4, 3}, DType::f64, GetParam(), 1);
  const Window window{.stride = {2, 1}, .padding = {1, 1}};
  expect_gradients([&](const auto& in) { return max_pool2d(in[0], {3, 2}, window); }, {x});
  expect_gradients([&](const auto& in) { return avg_pool2d(in[0], {3, 2}, window); }, {x});
  expect_gradients([&](const auto& in) { return adaptive_avg_pool2d(in[0], {3, 3}); }, {x});
  const NoGrad no_grad;
  EXPECT_FALSE(max_pool2d(x.clone().set_requires_grad(), {3, 2}, window).requires_grad());
}

INSTANTIATE_TEST_SUITE_P(Devices, PoolDevice, testing::ValuesIn(test_devices()), device_name);

TEST(Pool, WithoutWindow_StrideIsTheKernel) {
  const Tensor x = random_tensor({2, 6, 7, 3}, DType::f32, cpu_device, 1);
  expect_values(max_pool2d(x, 2), values_of(max_pool2d(x, {2, 2}, {.stride = {2, 2}})), 0);
  expect_values(avg_pool2d(x, {3, 2}), values_of(avg_pool2d(x, {3, 2}, {.stride = {3, 2}})), 0);
}

TEST(Pool, InvalidArguments_ThrowErrorThatNamesThem) {
  const auto of = [](const Shape& shape, DType dtype = DType::f32) {
    return random_tensor(shape, dtype, cpu_device, 1);
  };
  const Tensor x = of({1, 4, 4, 2});
  EXPECT_EQ(
      error_text([&] {
        max_pool2d(of({4, 4, 2}), {2, 2}, {});
      }),
      "[max_pool2d] expected images (n, height, width, channels) with no size of 0 but n, got [4, 4, 2]");
  EXPECT_EQ(error_text([&] {
              max_pool2d(x, {2, 2}, {.padding = {2, 0}});
            }),
            "[max_pool2d] expected a padding of at most half the kernel 2x2, got 2x0");
  EXPECT_EQ(error_text([&] {
              max_pool2d(of({1, 20, 20, 1}), {17, 16}, {});
            }),
            "[max_pool2d] expected a kernel of at most 256 elements, got 17x16");
  EXPECT_EQ(error_text([&] {
              avg_pool2d(x, {5, 2}, {});
            }),
            "[avg_pool2d] expected images of at least 5x2, got 4x4");
  EXPECT_EQ(error_text([&] {
              avg_pool2d(x, {2, 2}, {.dilation = {2, 1}});
            }),
            "[avg_pool2d] expected no dilation, got 2x1");
  EXPECT_EQ(error_text([&] {
              adaptive_avg_pool2d(x, {0, 1});
            }),
            "[adaptive_avg_pool2d] expected a result of at least 1x1, got 0x1");
  EXPECT_EQ(error_text([&] {
              max_pool2d(of({1, 4, 4, 2}, DType::i32), {2, 2}, {});
            }),
            "[max_pool2d] expected a floating dtype, got i32");
  EXPECT_EQ(error_text([&] {
              max_pool2d(Tensor(), {2, 2}, {});
            }),
            "[max_pool2d] expected a tensor, got an undefined one");
}

}  // namespace
}  // namespace tandem
