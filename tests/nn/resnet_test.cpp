// Residual networks compared with PyTorch (tests/golden/make_resnet.py); state dicts, frozen parts, bad
// input.
#include "tandem/nn/resnet.h"

#include "tandem/ops/cast.h"
#include "tandem/ops/fill.h"
#include "tests/nn/resnet_case.h"

namespace tandem {
namespace {

TEST(ResNet, StateDict_HasTorchvisionsNamesAndShapes) {
  const std::map<int, std::size_t> entries = {{18, 122}, {34, 218}, {50, 320}};
  for (const golden::Case& one : resnet_cases("names")) {
    SCOPED_TRACE(one.name);
    const ResNet model({.depth = one.params.at("depth")});
    std::map<std::string, Shape> expected, actual;
    const std::vector<std::string> names = one.params.at("names");
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::vector<std::int64_t> shape = one.params.at("shapes").at(i);
      expected.emplace(names[i], Shape(std::span<const std::int64_t>(shape)));
    }
    const NamedTensors state = model.state_dict();
    for (const auto& [name, tensor] : state) {
      actual.emplace(name, tensor.shape());
      EXPECT_EQ(tensor.dtype(), name.ends_with("tracked") ? DType::i64 : DType::f32) << name;
    }
    EXPECT_EQ(state.size(), entries.at(one.params.at("depth")));
    EXPECT_EQ(actual.size(), state.size());  // no duplicate names
    EXPECT_TRUE(actual == expected);
    for (const auto& [name, shape] : expected) {
      ASSERT_TRUE(actual.contains(name)) << name;
      EXPECT_EQ(actual.at(name), shape) << name;
    }
  }
}

class ResNetOnDevice : public testing::TestWithParam<Device> {};

TEST_P(ResNetOnDevice, Step_EqualsPyTorch) {
  for (const golden::Case& one : resnet_cases("step")) {
    SCOPED_TRACE(one.name);
    expect_step(*resnet_of(one, GetParam()), one, GetParam(), 1e-4);
  }
}

TEST_P(ResNetOnDevice, ResNet50Logits_EqualPyTorch) {
  for (const golden::Case& one : resnet_cases("logits")) {
    const auto model = resnet_of(one, GetParam());
    model->eval();
    const NoGrad no_grad;
    const Tensor logits = (*model)(images_of(one, GetParam()));
    EXPECT_LE(relative_error(values_of(logits), one.array("evaluated").values<double>()), 1e-4);
  }
}

TEST_P(ResNetOnDevice, FrozenBackbone_GetsNoGradients) {
  ResNet model({.classes = 3});
  model.freeze_backbone();
  model.to(GetParam());
  const Tensor x = random_tensor({2, 33, 40, 3}, DType::f32, GetParam(), 1);
  const auto batches_tracked = [&] {
    for (const auto& [name, buffer] : model.buffers())
      if (name.ends_with("num_batches_tracked")) return values_of(buffer).front();
    return -1.0;
  };
  const auto train_once = [&] {
    model.zero_grad();
    backward(cross_entropy(model(x), golden::step_labels(2, 3).to(GetParam())));
    for (const auto& [name, parameter] : model.parameters()) {
      EXPECT_EQ(parameter.requires_grad(), name.starts_with("fc.")) << name;
      EXPECT_EQ(parameter.grad().defined(), name.starts_with("fc.")) << name;
    }
  };
  train_once();
  EXPECT_EQ(batches_tracked(), 1);  // statistics are still updated
  model.freeze_statistics();
  std::vector<std::vector<double>> before;
  for (const auto& [name, buffer] : model.buffers()) before.push_back(values_of(buffer));
  train_once();
  const NamedTensors buffers = model.buffers();
  for (std::size_t i = 0; i < buffers.size(); ++i)
    EXPECT_EQ(values_of(buffers[i].tensor), before[i]) << buffers[i].name;
}

TEST_P(ResNetOnDevice, FoldedInference_FollowsLoadingTrainingAndMoving) {
  ResNet model({.classes = 4});
  const Tensor x = random_tensor({2, 40, 33, 3}, DType::f32, cpu_device, 2);
  // Evaluation is folded without gradients and unfolded with them.
  const auto expect_same = [&] {
    model.eval();
    const Device device = model.parameters().front().tensor.device();
    const std::vector<double> plain = values_of(model(x.to(device)));
    const NoGrad no_grad;
    EXPECT_LE(relative_error(values_of(model(x.to(device))), plain), 1e-5);
    return plain;
  };
  const auto initial = expect_same();
  model.load_state_dict(golden::hashed_state(model, "first."));
  const auto loaded = expect_same();
  EXPECT_GT(relative_error(loaded, initial), 1e-2);
  model.train();
  {
    const NoGrad no_grad;
    model(x);  // updates the statistics
  }
  EXPECT_GT(relative_error(expect_same(), loaded), 1e-3);
  model.to(GetParam());
  expect_same();
}

INSTANTIATE_TEST_SUITE_P(Devices, ResNetOnDevice, testing::ValuesIn(test_devices()), device_name);

TEST(ResNetCuda, Bf16_IsCloseToF32) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  for (const golden::Case& one : resnet_cases("step")) {
    SCOPED_TRACE(one.name);
    const auto model = resnet_of(one, cuda_device());
    const Tensor x = cast(images_of(one, cuda_device()), DType::bf16);
    model->eval();
    const auto expected = one.array("evaluated").values<double>();
    const Tensor plain = (*model)(x);
    EXPECT_EQ(plain.dtype(), DType::f32);
    EXPECT_LE(relative_error(values_of(plain), expected), 5e-2);
    const NoGrad no_grad;
    EXPECT_LE(relative_error(values_of((*model)(x)), expected), 5e-2);
  }
}

// stage_features() computes one layer after the other, features() all of them as one chain where it can.
TEST(ResNet, Features_AreTheMeansOfTheLastStage) {
  for (const int depth : {18, 50})
    for (const DType dtype : {DType::bf16, DType::f32}) {
      ResNet model({.depth = depth});
      model.eval();
      const NoGrad no_grad;
      const Tensor x = random_tensor({2, 50, 41, 3}, dtype, cpu_device, 4), features = model.features(x),
                   stages = model.stage_features(x);
      EXPECT_EQ(values_of(features),
                values_of(stages.slice(1, stages.size(1) - features.size(1), stages.size(1))))
          << depth << " " << name_of(dtype);
    }
}

TEST(ResNet, LoadStateDict_OfAnotherInstance_GivesTheSameLogits) {
  ResNet from({.classes = 3, .seed = 5}), to({.classes = 3, .seed = 6});
  from.load_state_dict(golden::hashed_state(from, "saved."));
  to.load_state_dict(from.state_dict());
  const NamedTensors saved = from.state_dict(), loaded = to.state_dict();
  for (std::size_t i = 0; i < saved.size(); ++i)
    EXPECT_TRUE(values_of(saved[i].tensor) == values_of(loaded[i].tensor)) << saved[i].name;
  from.eval();
  to.eval();
  const NoGrad no_grad;
  const Tensor x = random_tensor({1, 32, 32, 3}, DType::f32, cpu_device, 3);
  EXPECT_EQ(values_of(from(x)), values_of(to(x)));
}

TEST(ResNet, InitialWeights_DependOnTheSeed) {
  const ResNet one({.classes = 2, .seed = 5}), same({.classes = 2, .seed = 5}),
      other({.classes = 2, .seed = 6});
  const auto a = one.state_dict(), b = same.state_dict(), c = other.state_dict();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto first = values_of(a[i].tensor);
    EXPECT_TRUE(first == values_of(b[i].tensor)) << a[i].name;
    EXPECT_EQ(first == values_of(c[i].tensor), a[i].tensor.rank() < 2)
        << a[i].name;  // norms have constant initial values
  }
  // No two layers of the same shape are the same.
  EXPECT_FALSE(values_of(one.parameters()[3].tensor) == values_of(one.parameters()[6].tensor));
}

TEST(ResNet, Images_MayHaveAnySize) {
  ResNet model({.classes = 2, .channels = 1});
  model.eval();
  const NoGrad no_grad;
  for (const auto& [height, width] : {std::pair{1, 1}, {1, 70}, {5, 3}, {33, 32}})
    for (const double value : values_of(model(ones({1, height, width, 1}))))
      EXPECT_TRUE(std::isfinite(value));
}

TEST(ResNet, InvalidInput_Throws) {
  EXPECT_EQ(error_text([] { ResNet({.depth = 20}); }), "[resnet] expected a depth of 18, 34 or 50, got 20");
  EXPECT_EQ(error_text([] { ResNet({.classes = 0}); }),
            "[linear] expected sizes of 1 or more, got 512 and 0");
  EXPECT_EQ(error_text([] { ResNet({.channels = 0}); }),
            "[conv2d] expected channel counts of 1 or more divisible by 1 groups, got 0 and 64");
  ResNet model({.classes = 2});
  EXPECT_EQ(error_text([&] {
              model(ones({8, 8, 3}));
            }),
            "[resnet] expected images (n, height, width, 3), got [8, 8, 3]");
  EXPECT_EQ(error_text([&] {
              model(ones({1, 3, 8, 8}));
            }),
            "[resnet] expected images (n, height, width, 3), got [1, 3, 8, 8]");
  EXPECT_EQ(error_text([&] {
              model(ones({1, 8, 8, 3}, DType::u8));
            }),
            "[conv2d] expected a floating dtype, got u8");
  EXPECT_EQ(error_text([&] {
              model(ones({1, 8, 8, 3}, DType::f64));
            }),
            "[conv2d] expected a weight of f64, got f32");
  EXPECT_NE(error_text([&] { model(ones({1, 8, 8, 3})); }).find("more than one value"), std::string::npos);
  EXPECT_NE(error_text([&] {
              model.load_state_dict(ResNet({.depth = 34}).state_dict());
            }).find("different: fc.weight (expected f32 [2, 512], got f32 [1000, 512])"),
            std::string::npos);
}

}  // namespace
}  // namespace tandem
