// The small CNN compared with the same network in PyTorch; shapes and errors.
#include "tandem/nn/cnn.h"

#include "tandem/ops/fill.h"
#include "tests/nn/resnet_case.h"

namespace tandem {
namespace {

class CnnOnDevice : public testing::TestWithParam<Device> {};

TEST_P(CnnOnDevice, Step_EqualsPyTorch) {
  for (const golden::Case& one : resnet_cases("cnn step")) {
    SCOPED_TRACE(one.name);
    Cnn model({.classes = one.params.at("classes"),
               .channels = one.params.at("channels"),
               .width = one.params.at("width")});
    load_case(model, one);
    model.to(GetParam());
    expect_step(model, one, GetParam(), 1e-4);
  }
}

TEST_P(CnnOnDevice, FrozenBackbone_GetsNoGradientsAndKeepsFrozenStatistics) {
  Cnn model({.classes = 3, .width = 4});
  model.freeze_backbone();
  model.freeze_statistics();
  model.to(GetParam());
  std::vector<std::vector<double>> before;
  for (const auto& [name, buffer] : model.buffers()) before.push_back(values_of(buffer));
  const Tensor x = random_tensor({2, 9, 8, 1}, DType::f32, GetParam(), 1);
  backward(cross_entropy(model(x), golden::step_labels(2, 3).to(GetParam())));
  for (const auto& [name, parameter] : model.parameters())
    EXPECT_EQ(parameter.grad().defined(), name.starts_with("fc.")) << name;
  const NamedTensors buffers = model.buffers();
  for (std::size_t i = 0; i < buffers.size(); ++i)
    EXPECT_EQ(values_of(buffers[i].tensor), before[i]) << buffers[i].name;
}

INSTANTIATE_TEST_SUITE_P(Devices, CnnOnDevice, testing::ValuesIn(test_devices()), device_name);

TEST(Cnn, StateDict_HasSixConvolutionsOfThreeWidths) {
  const Cnn model({.classes = 7, .channels = 3, .width = 8});
  std::map<std::string, Shape> shapes;
  for (const auto& [name, tensor] : model.state_dict()) shapes.emplace(name, tensor.shape());
  EXPECT_EQ(shapes.size(), 6U * 6 + 2);
  EXPECT_EQ(shapes.at("conv1.weight"), (Shape{8, 3, 3, 3}));
  EXPECT_EQ(shapes.at("conv3.weight"), (Shape{16, 8, 3, 3}));
  EXPECT_EQ(shapes.at("conv6.weight"), (Shape{32, 32, 3, 3}));
  EXPECT_EQ(shapes.at("bn5.running_var"), (Shape{32}));
  EXPECT_EQ(shapes.at("fc.weight"), (Shape{7, 32}));
}

TEST(Cnn, ImageSize_EightByEightOrMore) {
  Cnn model({.classes = 2, .width = 4});
  for (const auto& [height, width] : {std::pair{8, 8}, {9, 31}, {28, 28}})
    EXPECT_EQ(model(ones({2, height, width, 1})).shape(), (Shape{2, 2}));
  EXPECT_EQ(error_text([&] {
              model(ones({1, 3, 8, 1}));
            }),
            "[max_pool2d] expected images of at least 2x2, got 1x4");
  EXPECT_EQ(error_text([&] {
              model(ones({1, 8, 8, 3}));
            }),
            "[cnn] expected images (n, height, width, 1), got [1, 8, 8, 3]");
  EXPECT_EQ(error_text([] { Cnn({.classes = 0}); }), "[linear] expected sizes of 1 or more, got 128 and 0");
}

}  // namespace
}  // namespace tandem
