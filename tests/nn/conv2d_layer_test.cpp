// The convolution layer: layout in state dicts, initialization, options.
#include "tandem/nn/conv2d.h"

#include <cmath>

#include "tests/ops/op_test.h"

namespace tandem {
namespace {

TEST(Conv2dLayer, StateDict_HasPyTorchsLayout) {
  Conv2d layer(2, 3, {.kernel = {1, 2}});
  EXPECT_EQ(layer.weight().shape(), (Shape{3, 1, 2, 2}));
  const NamedTensors state = layer.state_dict();
  ASSERT_EQ(state.size(), 2U);
  EXPECT_EQ(state[0].name, "weight");
  EXPECT_EQ(state[0].tensor.shape(), (Shape{3, 2, 1, 2}));
  EXPECT_EQ(state[1].name, "bias");
  EXPECT_EQ(values_of(state[1].tensor), (std::vector<double>{0, 0, 0}));
  // Filter 0 selects channel 0 of the left pixel, filter 1 channel 1 of the right pixel, filter 2 sums
  // everything.
  layer.load_state_dict(
      {{"weight", tensor_of({1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}, {3, 2, 1, 2}, DType::f32)},
       {"bias", tensor_of({10, 20, 30}, {3}, DType::f32)}});
  const Tensor x = tensor_of({1, 2, 3, 4}, {1, 1, 2, 2}, DType::f32);  // two pixels of two channels
  EXPECT_EQ(values_of(layer(x)), (std::vector<double>{11, 24, 40}));
  EXPECT_EQ(values_of(layer.state_dict()[0].tensor),
            (std::vector<double>{1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}));
}

TEST(Conv2dLayer, InitialWeight_HasTheVarianceOfItsFanOut) {
  const Conv2d layer(64, 32, {.bias = false, .random = {.seed = 3}});
  EXPECT_FALSE(layer.bias().defined());
  EXPECT_EQ(layer.parameters().size(), 1U);
  double sum = 0, squares = 0;
  const std::vector<double> values = values_of(layer.weight());
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(values.size());
  EXPECT_NEAR(squares / count, 2.0 / (32 * 9), 0.05 * 2 / (32 * 9));
  EXPECT_NEAR(sum / count, 0, 2e-3);
  // Values are sampled in file order.
  EXPECT_EQ(values_of(layer.state_dict()[0].tensor),
            values_of(normal({32, 64, 3, 3}, 0, std::sqrt(2.0 / (32 * 9)), {.seed = 3})));
}

TEST(Conv2dLayer, Forward_PassesOptionsToTheOperation) {
  Conv2d layer(4, 6,
               {.kernel = {3, 1},
                .window = {.stride = {2, 1}, .padding = {1, 0}},
                .groups = 2,
                .random = {.dtype = DType::f64}});
  EXPECT_EQ(layer.weight().dtype(), DType::f64);
  const Tensor x = random_tensor({2, 5, 3, 4}, DType::f64, cpu_device, 1);
  const Tensor y = layer(x);
  EXPECT_EQ(y.shape(), (Shape{2, 3, 3, 6}));
  EXPECT_EQ(values_of(y), values_of(conv2d(x, layer.weight(), layer.bias(), layer.options())));
  backward(sum(y));
  for (const auto& [name, parameter] : layer.parameters()) EXPECT_TRUE(parameter.grad().defined()) << name;
}

TEST(Conv2dLayer, InvalidOptions_Throw) {
  EXPECT_EQ(error_text([] { Conv2d(3, 4, {.groups = 2}); }),
            "[conv2d] expected channel counts of 1 or more divisible by 2 groups, got 3 and 4");
  EXPECT_EQ(error_text([] { Conv2d(3, 4, {.groups = 0}); }),
            "[conv2d] expected channel counts of 1 or more divisible by 0 groups, got 3 and 4");
  EXPECT_EQ(error_text([] { Conv2d(0, 4); }),
            "[conv2d] expected channel counts of 1 or more divisible by 1 groups, got 0 and 4");
  EXPECT_EQ(error_text([] {
              Conv2d(1, 1, {.kernel = {0, 3}});
            }),
            "[conv2d] expected a kernel of at least 1x1, got 0x3");
  Conv2d layer(3, 4);
  EXPECT_EQ(error_text([&] {
              layer(random_tensor({1, 2, 5, 3}, DType::f32, cpu_device, 1));
            }),
            "[conv2d] expected images of at least 3x3, got 2x5");
}

}  // namespace
}  // namespace tandem
