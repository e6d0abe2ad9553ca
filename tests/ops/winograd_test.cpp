#include "tandem/ops/conv/winograd.h"

#include "tandem/core/parallel.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/conv/conv2d_kernel.h"
#include "tandem/ops/conv/prepacked_conv.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

struct Layer {
  std::int64_t images, height, width, channels, filters, padding;
};

struct Run {
  Tensor y, dx, dweight;
};

// Activations as after a ReLU, weights of the magnitude of a trained network.
Run run(const Layer& layer, DType dtype) {
  const double scale = 1.5 / std::sqrt(static_cast<double>(9 * layer.channels));
  const Tensor x = random_tensor({layer.images, layer.height, layer.width, layer.channels}, DType::f32,
                                 cpu_device, 1, 0, 2);
  const Tensor weight =
      random_tensor({layer.filters, 3, 3, layer.channels}, DType::f32, cpu_device, 2, -scale, scale);
  Tensor input = cast(x, dtype).set_requires_grad(), kernel = cast(weight, dtype).set_requires_grad();
  const Tensor y = conv2d(input, kernel, Tensor(), {.window = {.padding = {layer.padding, layer.padding}}});
  backward(y, cast(random_tensor(y.shape(), DType::f32, cpu_device, 3, -1, 1), dtype));
  return {y.detach(), input.grad(), kernel.grad()};
}

bool uses_winograd(const Layer& layer) {
  const Tensor x = Tensor::empty({layer.images, layer.height, layer.width, layer.channels}, DType::f32);
  return detail::is_winograd_profitable(detail::conv2d_plan(
      x, {layer.filters, 3, 3, layer.channels}, {.window = {.padding = {layer.padding, layer.padding}}}));
}

// f64 uses im2col. expect_values compares relative to the largest result, which is at least 1 here.
void expect_accurate(const Layer& layer) {
  SCOPED_TRACE(testing::Message() << layer.height << "x" << layer.width << "x" << layer.channels);
  EXPECT_TRUE(uses_winograd(layer));
  const Run exact = run(layer, DType::f64), fast = run(layer, DType::f32);
  expect_values(fast.y, values_of(exact.y), 1e-5);
  expect_values(fast.dx, values_of(exact.dx), 1e-5);
  expect_values(fast.dweight, values_of(exact.dweight), 1e-5);
}

TEST(Winograd, ResNetLayers_AreAccurate) {
  for (const Layer& layer : {Layer{1, 56, 56, 64, 64, 1}, Layer{1, 28, 28, 128, 128, 1},
                             Layer{2, 14, 14, 256, 256, 1}, Layer{3, 7, 7, 512, 512, 1}})
    expect_accurate(layer);
}

// Sizes around tiles, groups of tiles, vectors and panels; every padding.
TEST(Winograd, SizesThatDoNotDivide_AreAccurate) {
  for (const Layer& layer :
       {Layer{1, 9, 13, 17, 33, 1}, Layer{2, 10, 6, 16, 21, 0}, Layer{1, 17, 18, 29, 16, 2},
        Layer{5, 6, 7, 64, 70, 1}, Layer{1, 31, 4, 20, 100, 1}, Layer{1, 40, 41, 19, 18, 0}})
    expect_accurate(layer);
}

TEST(Winograd, UnprofitableShapes_UseIm2col) {
  EXPECT_FALSE(uses_winograd({1, 1, 1, 64, 64, 1}));
  EXPECT_FALSE(uses_winograd({1, 4, 4, 64, 64, 0}));
  EXPECT_FALSE(uses_winograd({1, 56, 56, 3, 64, 1}));
  EXPECT_FALSE(uses_winograd({1, 56, 56, 64, 64, 3}));
  // A prepacked weight is transformed for all image sizes: small images must be correct too.
  const Tensor x = random_tensor({2, 2, 1, 16}, DType::f32, cpu_device, 1);
  const Tensor weight = random_tensor({16, 3, 3, 16}, DType::f32, cpu_device, 2);
  const Conv2dOptions options{.window = {.padding = {1, 1}}};
  expect_values(detail::prepacked_conv2d(detail::prepack_conv2d(weight, {}, options, DType::f32), x),
                values_of(conv2d(x, weight, Tensor(), options)), 1e-5);
}

std::vector<double> all_values(const Run& result) {
  std::vector<double> all = values_of(result.y);
  for (const Tensor& gradient : {result.dx, result.dweight})
    for (double value : values_of(gradient)) all.push_back(value);
  return all;
}

// Few tiles are split over filters too, and 64 filters do not divide by five threads. The last two have so
// few tiles that one or two threads transform filters and sums in their caches, and five do not.
TEST(Winograd, AnyNumberOfThreads_SameBits) {
  for (const Layer& layer : {Layer{1, 30, 31, 32, 64, 1}, Layer{1, 8, 8, 64, 64, 1},
                             Layer{1, 13, 14, 70, 66, 1}, Layer{1, 6, 7, 150, 33, 1}}) {
    const auto with = [&](int threads) {
      set_thread_count(threads);
      const auto values = all_values(run(layer, DType::f32));
      set_thread_count(usable_cpus());
      return values;
    };
    const std::vector<double> one = with(1);
    for (const int threads : {2, 3, 5}) EXPECT_TRUE(with(threads) == one) << threads << " threads";
  }
}

// A prepacked weight is transformed as a whole, that of a single convolution of few tiles in parts.
TEST(Winograd, PrepackedWeight_SameBits) {
  for (const Layer& layer : {Layer{2, 7, 7, 150, 130, 1}, Layer{1, 7, 6, 512, 512, 1}}) {
    const Tensor x =
        random_tensor({layer.images, layer.height, layer.width, layer.channels}, DType::f32, cpu_device, 1);
    const Tensor weight = random_tensor({layer.filters, 3, 3, layer.channels}, DType::f32, cpu_device, 2);
    const Tensor bias = random_tensor({layer.filters}, DType::f32, cpu_device, 3);
    const Conv2dOptions options{.window = {.padding = {1, 1}}};
    const Tensor prepacked =
        detail::prepacked_conv2d(detail::prepack_conv2d(weight, bias, options, DType::f32), x);
    EXPECT_TRUE(values_of(conv2d(x, weight, bias, options)) == values_of(prepacked));
  }
}

TEST(Im2colConv, AnyNumberOfThreads_SameBits) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = random_tensor({2, 15, 14, 8}, dtype, cpu_device, 1);
    const auto with = [&](int threads) {
      set_thread_count(threads);
      Tensor input = x.clone().set_requires_grad();
      Tensor kernel = random_tensor({30, 3, 3, 8}, dtype, cpu_device, 2).set_requires_grad();
      const Tensor y = conv2d(input, kernel, Tensor(), {.window = {.stride = {2, 2}, .padding = {1, 1}}});
      backward(y, random_tensor(y.shape(), dtype, cpu_device, 3));
      set_thread_count(usable_cpus());
      return all_values({y, input.grad(), kernel.grad()});
    };
    const std::vector<double> one = with(1);
    for (const int threads : {2, 3, 5}) EXPECT_TRUE(with(threads) == one) << threads << " threads";
  }
}

}  // namespace
}  // namespace tandem
