#include "tandem/nn/dropout.h"

#include "tandem/ops/fill.h"
#include "tandem/ops/random.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

class DropoutOnDevice : public testing::TestWithParam<Device> {};

TEST_P(DropoutOnDevice, Training_DropsTheGivenFraction) {
  Dropout dropout(0.3, 5);
  dropout.to(GetParam());
  const Tensor x = ones({100, 1001}, DType::f32, GetParam());
  const std::vector<double> values = values_of(dropout(x));
  double dropped = 0;
  for (double value : values) {
    ASSERT_TRUE(value == 0 || std::abs(value - 1 / 0.7) < 1e-6);
    dropped += value == 0;
  }
  const auto count = static_cast<double>(values.size());
  EXPECT_NEAR(dropped / count, 0.3, 5 * std::sqrt(0.21 / count));
}

TEST_P(DropoutOnDevice, Mask_DependsOnStepLayerAndSeedAndNotOnTheDevice) {
  const auto masks = [](std::uint64_t seed, std::uint32_t layer, Device device) {
    Dropout dropout(0.5, seed, layer);
    dropout.to(device);
    const Tensor x = ones({7, 9}, DType::f64, device);
    const auto first = values_of(dropout(x));
    return std::pair(first, values_of(dropout(x)));
  };
  const auto [first, second] = masks(1, 0, GetParam());
  EXPECT_NE(first, second);
  EXPECT_EQ(masks(1, 0, cpu_device), std::pair(first, second));
  EXPECT_NE(masks(2, 0, GetParam()).first, first);
  EXPECT_NE(masks(1, 1, GetParam()).first, first);
}

TEST_P(DropoutOnDevice, Evaluation_IsTheIdentity_State_ContinuesTheMasks) {
  Dropout dropout(0.5, 3, 2), resumed(0.5, 3, 2);
  dropout.to(GetParam());
  resumed.to(GetParam());
  const Tensor x = random_tensor({40}, DType::f32, GetParam(), 1);
  (void)dropout(x);
  resumed.load_state_dict(dropout.state_dict());
  dropout.eval();
  EXPECT_EQ(values_of(dropout(x)), values_of(x));
  dropout.train();
  EXPECT_EQ(values_of(dropout(x)), values_of(resumed(x)));
  EXPECT_EQ(dropout.buffers()[0].tensor.item<std::int64_t>(), 2);
}

TEST_P(DropoutOnDevice, DefaultLayers_NeverShareAMask) {
  const Tensor x = ones({64}, GetParam());
  const auto mask_of_new_layer = [&] {
    Dropout layer(0.5);
    layer.to(GetParam());
    return values_of(layer(x));
  };
  manual_seed(11);
  const auto first = mask_of_new_layer(), second = mask_of_new_layer();
  EXPECT_NE(first, second);
  manual_seed(11);
  EXPECT_EQ(mask_of_new_layer(), first);
}

TEST_P(DropoutOnDevice, Gradient_UsesTheSameMask) {
  Dropout dropout(0.5);
  dropout.to(GetParam());
  Tensor x = ones({33}, DType::f64, GetParam()).set_requires_grad();
  const Tensor y = dropout(x);
  backward(sum(y));
  EXPECT_EQ(values_of(x.grad()), values_of(y));
}

INSTANTIATE_TEST_SUITE_P(Devices, DropoutOnDevice, testing::ValuesIn(test_devices()), device_name);

}  // namespace
}  // namespace tandem
