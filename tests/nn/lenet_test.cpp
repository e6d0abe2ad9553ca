#include "tandem/nn/lenet.h"

#include "tandem/ops/cast.h"
#include "tandem/ops/cross_entropy.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

class LeNetOnDevice : public testing::TestWithParam<Device> {};

// The layers written as loops in f64, from the definition of the network.
std::vector<double> logits_by_hand(const NamedTensors& state, const std::vector<double>& image,
                                   std::int64_t side, std::int64_t classes) {
  const auto weights = [&](const std::string& name) {
    for (const NamedTensor& each : state)
      if (each.name == name) return values_of(each.tensor);
    return std::vector<double>();
  };
  const auto at = [](const std::vector<double>& values, std::int64_t i) {
    return values[static_cast<std::size_t>(i)];
  };
  // Images and feature maps are [channel][y][x]; weights are those of the state dict: [out][in][y][x].
  const auto convolve_and_pool = [&](const std::vector<double>& in, std::int64_t channels, std::int64_t size,
                                     const std::string& name, std::int64_t filters, std::int64_t padding) {
    const std::vector<double> weight = weights(name + ".weight"), bias = weights(name + ".bias");
    const std::int64_t out_size = size + 2 * padding - 4;
    std::vector<double> pooled;
    for (std::int64_t f = 0; f < filters; ++f)
      for (std::int64_t py = 0; py + 1 < out_size; py += 2)
        for (std::int64_t px = 0; px + 1 < out_size; px += 2) {
          double max = 0;  // of the rectified values
          for (std::int64_t k = 0; k < 4; ++k) {
            double sum = at(bias, f);
            for (std::int64_t c = 0; c < channels; ++c)
              for (std::int64_t dy = 0; dy < 5; ++dy)
                for (std::int64_t dx = 0; dx < 5; ++dx) {
                  const std::int64_t y = py + k / 2 + dy - padding, x = px + k % 2 + dx - padding;
                  if (y < 0 || x < 0 || y >= size || x >= size) continue;
                  sum +=
                      at(in, (c * size + y) * size + x) * at(weight, ((f * channels + c) * 5 + dy) * 5 + dx);
                }
            max = std::max(max, sum);
          }
          pooled.push_back(max);
        }
    return pooled;
  };
  const auto linear = [&](const std::vector<double>& in, const std::string& name, std::int64_t units) {
    const std::vector<double> weight = weights(name + ".weight"), bias = weights(name + ".bias");
    std::vector<double> out;
    for (std::int64_t u = 0; u < units; ++u) {
      double sum = at(bias, u);
      for (std::int64_t i = 0; i < std::ssize(in); ++i)
        sum += in[static_cast<std::size_t>(i)] * at(weight, u * std::ssize(in) + i);
      out.push_back(sum);
    }
    return out;
  };
  const auto rectified = [](std::vector<double> values) {
    for (double& value : values) value = std::max(value, 0.0);
    return values;
  };
  const std::vector<double> first = convolve_and_pool(image, 1, side, "conv1", 6, 2);
  const std::vector<double> second = convolve_and_pool(first, 6, side / 2, "conv2", 16, 0);
  std::vector<double> channels_last;
  for (std::int64_t i = 0; i < 25; ++i)
    for (std::int64_t c = 0; c < 16; ++c) channels_last.push_back(at(second, c * 25 + i));
  return linear(rectified(linear(rectified(linear(channels_last, "fc1", 120)), "fc2", 84)), "fc", classes);
}

TEST_P(LeNetOnDevice, Forward_EqualsTheDefinition) {
  LeNet model({.classes = 7, .seed = 3});
  const std::vector<double> image = values_of(random_tensor({28 * 28}, DType::f32, cpu_device, 4));
  const std::vector<double> expected = logits_by_hand(model.state_dict(), image, 28, 7);
  model.to(GetParam());
  const Tensor x = tensor_of(image, {1, 28, 28, 1}, DType::f32, GetParam());
  expect_values(model(x), expected, 1e-4);
}

TEST_P(LeNetOnDevice, OtherSizesAndBf16_GiveLogitsAndGradients) {
  LeNet model({.classes = 5, .channels = 3});
  model.to(GetParam());
  for (const Shape& shape : {Shape{2, 12, 12, 3}, Shape{1, 32, 32, 3}, Shape{3, 47, 64, 3}}) {
    const Tensor x = random_tensor(shape, DType::f32, GetParam(), 5);
    EXPECT_EQ(model(x).shape(), (Shape{shape[0], 5}));
    EXPECT_EQ(model(cast(x, DType::bf16)).dtype(), DType::f32);
    backward(cross_entropy(
        model(x), tensor_of({0}, {1}, DType::i32, GetParam()).broadcast_view({shape[0]}).contiguous()));
  }
  for (const auto& [name, parameter] : model.parameters()) EXPECT_TRUE(parameter.grad().defined()) << name;
}

INSTANTIATE_TEST_SUITE_P(Devices, LeNetOnDevice, testing::ValuesIn(test_devices()), device_name);

TEST(LeNet, FrozenBackbone_TrainsTheHeadOnly) {
  LeNet model;
  model.freeze_backbone();
  for (const auto& [name, parameter] : model.parameters())
    EXPECT_EQ(parameter.requires_grad(), name.starts_with("fc.")) << name;
  EXPECT_EQ(model.feature_count(), 84);
}

TEST(LeNet, WrongImages_AreErrors) {
  LeNet model;
  EXPECT_EQ(error_text([&] {
              model(random_tensor({1, 28, 28, 3}, DType::f32, cpu_device, 1));
            }),
            "[lenet] expected images (n, height, width, 1), got [1, 28, 28, 3]");
}

}  // namespace
}  // namespace tandem
