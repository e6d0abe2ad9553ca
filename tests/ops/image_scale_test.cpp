#include "tandem/ops/conv/image_scale.h"

#include <fmt/format.h>

#include "tandem/core/parallel.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/conv/pool.h"
#include "tandem/ops/linear.h"
#include "tandem/tensor/tape.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

const std::vector<Shape> shapes{{1, 1, 1, 1},  {2, 3, 2, 5},   {3, 7, 7, 40},  {2, 9, 11, 64},
                                {2, 5, 5, 72}, {1, 3, 3, 300}, {2, 30, 30, 8}, {0, 3, 3, 4}};

Shape factor_shape(const Tensor& x) {
  return {x.size(0), x.size(3)};
}

class ImageScaleTest : public OpTest {
 protected:
  DType factor_dtype() const { return dtype() == DType::f64 ? DType::f64 : DType::f32; }
  Tensor random(const Shape& shape, std::uint32_t seed) const {
    return random_tensor(shape, dtype(), device(), seed, -1, 1);
  }
};

TEST_P(ImageScaleTest, SqueezeExcite_EqualsItsParts) {
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.to_string());
    Tensor x = random(shape, 1).set_requires_grad();
    const std::int64_t channels = shape[3];
    Tensor weight = random_tensor({channels, channels}, factor_dtype(), device(), 2).set_requires_grad();
    const Tensor dy = random(shape, 3);
    const Tensor y =
        squeeze_excite(x, [&](const Tensor& means) { return sigmoid(linear(means, weight, {})); });
    EXPECT_EQ(y.dtype(), dtype());
    backward(y, dy);
    // The same in f64, by separate operations.
    Tensor wide_x = tensor_of(values_of(x), shape, DType::f64, device()).set_requires_grad();
    Tensor wide_weight =
        tensor_of(values_of(weight), weight.shape(), DType::f64, device()).set_requires_grad();
    const Tensor means = adaptive_avg_pool2d(wide_x, {1, 1}).reshape(factor_shape(x));
    const Tensor factors = sigmoid(linear(means, wide_weight, {}));
    const Tensor expected = multiply(wide_x, factors.reshape({shape[0], 1, 1, channels}));
    backward(expected, tensor_of(values_of(dy), shape, DType::f64, device()));
    expect_values(y, values_of(expected), tolerance());
    if (shape[0] == 0) continue;
    expect_values(x.grad(), values_of(wide_x.grad()), tolerance());
    expect_values(weight.grad(), values_of(wide_weight.grad()), tolerance());
  }
}

TEST_P(ImageScaleTest, ScaleImages_MultipliesAndAdds) {
  for (const Shape& shape : shapes)
    for (const bool has_residual : {false, true}) {
      SCOPED_TRACE(fmt::format("{} residual {}", shape.to_string(), has_residual));
      Tensor x = random(shape, 1).set_requires_grad(), residual = random(shape, 2).set_requires_grad();
      const Tensor factors = random_tensor({shape[0]}, factor_dtype(), device(), 3), dy = random(shape, 4);
      const Tensor y = scale_images(x, factors, has_residual ? residual : Tensor());
      backward(y, dy);
      const std::vector<double> from = values_of(x), scale = values_of(factors), added = values_of(residual),
                                g = values_of(dy);
      std::vector<double> values, gradient;
      for (std::size_t i = 0; i < from.size(); ++i) {
        const double factor = scale[i / (from.size() / scale.size())];
        values.push_back(from[i] * factor + (has_residual ? added[i] : 0));
        gradient.push_back(g[i] * factor);
      }
      expect_values(y, values, tolerance());
      expect_values(x.grad(), gradient, tolerance());
      if (has_residual) expect_values(residual.grad(), g, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, ImageScaleTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

class ImageScaleOnDevice : public testing::TestWithParam<Device> {};

TEST_P(ImageScaleOnDevice, Gradients_EqualCentralDifferences) {
  expect_gradients(
      [](const std::vector<Tensor>& in) {
        return squeeze_excite(in[0],
                              [&](const Tensor& means) { return sigmoid(linear(means, in[1], in[2])); });
      },
      {random_tensor({2, 2, 3, 4}, DType::f64, GetParam(), 1),
       random_tensor({4, 4}, DType::f64, GetParam(), 2), random_tensor({4}, DType::f64, GetParam(), 3)});
}

TEST_P(ImageScaleOnDevice, Gradients_ExistOnlyWhereRequired) {
  Tensor x = random_tensor({2, 3, 3, 4}, DType::f32, GetParam(), 1);
  Tensor weight = random_tensor({4, 4}, DType::f32, GetParam(), 2);
  const auto run = [&] {
    return squeeze_excite(x, [&](const Tensor& means) { return sigmoid(linear(means, weight, {})); });
  };
  EXPECT_FALSE(run().requires_grad());
  weight.set_requires_grad();
  backward(sum(run()));
  EXPECT_TRUE(weight.grad().defined());
  EXPECT_FALSE(x.grad().defined());
  weight.set_requires_grad(false);
  x.set_requires_grad();
  backward(sum(run()));
  EXPECT_TRUE(x.grad().defined());
  const NoGrad no_grad;
  EXPECT_FALSE(run().requires_grad());
}

INSTANTIATE_TEST_SUITE_P(Devices, ImageScaleOnDevice, testing::ValuesIn(test_devices()), device_name);

TEST(ImageScale, Bits_DoNotDependOnThreads) {
  const auto run = [](int threads) {
    set_thread_count(threads);
    Tensor x = random_tensor({3, 20, 20, 136}, DType::f32, cpu_device, 1).set_requires_grad();
    const Tensor y = squeeze_excite(x, [](const Tensor& means) { return sigmoid(means); });
    backward(y, random_tensor(y.shape(), DType::f32, cpu_device, 2));
    set_thread_count(usable_cpus());
    return std::vector{values_of(y), values_of(x.grad())};
  };
  EXPECT_EQ(run(1), run(5));
}

TEST(ImageScale, InvalidArguments_ThrowErrorThatNamesThem) {
  const Tensor x = random_tensor({2, 3, 3, 4}, DType::f32, cpu_device, 1);
  const auto same = [](const Tensor& means) { return means; };
  EXPECT_EQ(
      error_text([&] {
        squeeze_excite(x.reshape({18, 4}), same);
      }),
      "[squeeze_excite] expected floating images (n, height, width, channels) with no size of 0 but n, got "
      "f32 [18, 4]");
  EXPECT_EQ(error_text([&] { squeeze_excite(x, [](const Tensor& means) { return means.slice(1, 0, 2); }); }),
            "[squeeze_excite] expected factors [2, 4] of f32, got [2, 2] of f32");
  EXPECT_EQ(
      error_text([&] { scale_images(x, random_tensor({3}, DType::f32, cpu_device, 1)); }),
      "[scale_images] expected x (n, …) and factors (n) of f32, got [2, 3, 3, 4] of f32 and [3] of f32");
  EXPECT_EQ(error_text([&] {
              scale_images(x, random_tensor({2}, DType::f32, cpu_device, 1),
                           random_tensor({2, 3, 3, 5}, DType::f32, cpu_device, 1));
            }),
            "[scale_images] expected a residual of shape [2, 3, 3, 4], got [2, 3, 3, 5]");
}

}  // namespace
}  // namespace tandem
