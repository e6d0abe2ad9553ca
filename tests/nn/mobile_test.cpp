// MobileNetV3 and EfficientNet-B0 compared with torchvision (tests/golden/make_mobile.py); state dicts,
// frozen parts, random parts, bad input.
#include <fmt/format.h>

#include "tandem/core/parallel.h"
#include "tandem/nn/efficientnet.h"
#include "tandem/nn/mobilenet_v3.h"
#include "tandem/nn/model_registry.h"
#include "tandem/nn/stochastic_depth.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/fill.h"
#include "tests/nn/resnet_case.h"

namespace tandem {
namespace {

const std::vector<std::string> names{"mobilenet_v3_small", "mobilenet_v3_large", "efficientnet_b0"};

// Without dropout and stochastic depth, as the stored values are.
std::unique_ptr<BackboneModel> plain_model(const std::string& name, std::int64_t classes,
                                           std::uint64_t seed = 1) {
  if (name == "efficientnet_b0")
    return std::make_unique<EfficientNet>(
        EfficientNetOptions{.classes = classes, .dropout = 0, .stochastic_depth = 0, .seed = seed});
  return std::make_unique<MobileNetV3>(MobileNetV3Options{
      .large = name == "mobilenet_v3_large", .classes = classes, .dropout = 0, .seed = seed});
}

// As it is trained.
std::unique_ptr<BackboneModel> model_of(const std::string& name, std::int64_t classes) {
  auto module = make_model({.model = name, .channels = 3, .classes = classes});
  return std::unique_ptr<BackboneModel>(dynamic_cast<BackboneModel*>(module.release()));
}

std::vector<golden::Case> mobile_cases(const std::string& op) {
  std::vector<golden::Case> cases;
  for (const golden::Case& one : golden::load("mobile"))
    if (one.params.at("op") == op) cases.push_back(one);
  EXPECT_GE(cases.size(), 3u);
  return cases;
}

// The biases of batch norms, in the order of the modules.
void nudge_norms(NamedTensors& state, const std::vector<float>& steps) {
  std::size_t next = 0;
  for (const auto& [name, tensor] : state) {
    if (!name.ends_with(".bias")) continue;
    const std::string mean = name.substr(0, name.size() - 4) + "running_mean";
    if (std::ranges::find(state, mean, &NamedTensor::name) == state.end()) continue;
    for (float& bias : std::span(tensor.data<float>(), static_cast<std::size_t>(tensor.numel())))
      bias = static_cast<float>(double{bias} + double{steps.at(next++)} / 128);
  }
  EXPECT_EQ(next, steps.size());
}

std::unique_ptr<BackboneModel> model_of(const golden::Case& one, Device device) {
  auto model = plain_model(one.params.at("model"), one.params.at("classes"));
  NamedTensors state = golden::hashed_state(*model, one.params.at("salt"));
  nudge_norms(state, one.array("nudges").values<float>());
  model->load_state_dict(state);
  model->to(device);
  return model;
}

TEST(Mobile, StateDict_HasTorchvisionsNamesAndShapes) {
  for (const golden::Case& one : mobile_cases("names")) {
    SCOPED_TRACE(one.name);
    std::map<std::string, Shape> expected, actual;
    const std::vector<std::string> keys = one.params.at("names");
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::vector<std::int64_t> shape = one.params.at("shapes").at(i);
      expected.emplace(keys[i], Shape(std::span<const std::int64_t>(shape)));
    }
    const auto state = plain_model(one.params.at("model"), 1000)->state_dict();
    for (const auto& [name, tensor] : state) {
      actual.emplace(name, tensor.shape());
      EXPECT_EQ(tensor.dtype(), name.ends_with("tracked") ? DType::i64 : DType::f32) << name;
    }
    EXPECT_EQ(actual.size(), state.size());  // no duplicate names
    EXPECT_TRUE(actual == expected);
    for (const auto& [name, shape] : expected) EXPECT_TRUE(actual.contains(name)) << name;
    // As it is trained, it also has the steps of its random parts.
    for (const auto& [name, tensor] : model_of(one.params.at("model"), 1000)->state_dict())
      EXPECT_TRUE(expected.contains(name) || name.ends_with(".step")) << name;
  }
}

class MobileOnDevice : public testing::TestWithParam<Device> {};

TEST_P(MobileOnDevice, Step_EqualsTorchvision) {
  for (const golden::Case& one : mobile_cases("step")) {
    SCOPED_TRACE(one.name);
    const auto model = model_of(one, GetParam());
    expect_step(*model, one, GetParam(), 1e-4);
    double max_norm = 0;
    for (const auto& [name, gradient] : gradients_of(*model))
      max_norm = std::max(max_norm, norm_of(values_of(gradient)));
    for (const std::string name : one.params.at("zero_names"))
      for (const auto& gradient : gradients_of(*model))
        if (gradient.name == name) {
          EXPECT_LE(norm_of(values_of(gradient.tensor)), 1e-5 * max_norm) << name;
        }
  }
}

TEST_P(MobileOnDevice, FrozenBackbone_GetsNoGradientsAndHasFixedFeatures) {
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const auto model = model_of(name, 3);
    model->freeze_backbone();
    EXPECT_TRUE(model->is_backbone_frozen());
    model->freeze_statistics();
    model->to(GetParam());
    const Tensor x = random_tensor({2, 33, 40, 3}, DType::f32, GetParam(), 1);
    const std::string head = name == "efficientnet_b0" ? "classifier.1." : "classifier.3.";
    backward(cross_entropy((*model)(x), golden::step_labels(2, 3).to(GetParam())));
    for (const auto& [key, parameter] : model->parameters()) {
      EXPECT_EQ(parameter.requires_grad(), key.starts_with(head)) << key;
      EXPECT_EQ(parameter.grad().defined(), key.starts_with(head)) << key;
      EXPECT_EQ(model->is_head(key), key.starts_with(head)) << key;
    }
    // Dropout is part of the head, and frozen branches are not dropped.
    const auto features = values_of(model->features(x));
    EXPECT_EQ(values_of(model->features(x)), features);
    EXPECT_NE(values_of((*model)(x)), values_of((*model)(x)));
    model->eval();
    EXPECT_LE(relative_error(values_of(model->features(x)), features), 1e-5);
  }
}

TEST_P(MobileOnDevice, StageFeatures_EndWithTheFeatures) {
  const std::map<std::string, std::int64_t> widths{{"mobilenet_v3_small", 24 + 48 + 1024},
                                                   {"mobilenet_v3_large", 40 + 112 + 1280},
                                                   {"efficientnet_b0", 40 + 112 + 1280}};
  const NoGrad no_grad;
  for (const std::string& name : names) {
    const auto model = model_of(name, 3);
    model->to(GetParam());
    model->eval();
    const Tensor x = random_tensor({2, 40, 33, 3}, DType::f32, GetParam(), 1);
    const Tensor stages = model->stage_features(x), features = model->features(x);
    EXPECT_EQ(stages.shape(), (Shape{2, widths.at(name)}));
    EXPECT_EQ(values_of(stages.slice(1, stages.size(1) - features.size(1), stages.size(1))),
              values_of(features));
  }
}

// The same seed drops the same images: a run can be repeated and resumed.
TEST_P(MobileOnDevice, RandomParts_AreAFunctionOfTheStep) {
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Tensor x = random_tensor({4, 32, 32, 3}, DType::f32, GetParam(), 1);
    const auto one = model_of(name, 3), other = model_of(name, 3);
    one->to(GetParam());
    other->to(GetParam());
    const auto first = values_of((*one)(x)), second = values_of((*one)(x));
    EXPECT_NE(first, second);
    EXPECT_EQ(values_of((*other)(x)), first);
    const auto resumed = model_of(name, 3);
    resumed->to(GetParam());
    resumed->load_state_dict(other->state_dict());
    EXPECT_EQ(values_of((*resumed)(x)), second);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, MobileOnDevice, testing::ValuesIn(test_devices()), device_name);

TEST(MobileCuda, Bf16_IsCloseToF32) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  for (const golden::Case& one : mobile_cases("step")) {
    SCOPED_TRACE(one.name);
    const auto model = model_of(one, cuda_device());
    const Tensor x = cast(images_of(one, cuda_device()), DType::bf16);
    model->eval();
    const auto expected = one.array("evaluated").values<double>();
    const Tensor plain = (*model)(x);
    EXPECT_EQ(plain.dtype(), DType::f32);
    EXPECT_LE(relative_error(values_of(plain), expected), 1e-1);
    const NoGrad no_grad;
    EXPECT_LE(relative_error(values_of((*model)(x)), expected), 1e-1);
  }
}

TEST(Mobile, InitialWeights_AreTorchvisionsDistributions) {
  for (const std::string& name : names) {
    const auto one = plain_model(name, 100, 5), same = plain_model(name, 100, 5),
               other = plain_model(name, 100, 6);
    const auto a = one->state_dict(), b = same->state_dict(), c = other->state_dict();
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto values = values_of(a[i].tensor);
      EXPECT_TRUE(values == values_of(b[i].tensor)) << a[i].name;
      EXPECT_EQ(values == values_of(c[i].tensor), a[i].tensor.rank() < 2) << a[i].name;
      if (a[i].name.ends_with("bias")) {
        EXPECT_EQ(norm_of(values), 0) << a[i].name;
      }
      if (a[i].tensor.rank() < 2 || values.size() < 1000) continue;
      const Shape& shape = a[i].tensor.shape();
      const double expected =
          shape.rank() == 4           ? std::sqrt(2.0 / static_cast<double>(shape[0] * shape[2] * shape[3]))
          : name == "efficientnet_b0" ? 1 / std::sqrt(3 * 1000.0)  // as with 1,000 classes
                                      : 0.01;
      EXPECT_NEAR(norm_of(values) / std::sqrt(static_cast<double>(values.size())), expected, 0.1 * expected)
          << a[i].name;
    }
  }
}

TEST(Mobile, Bits_DoNotDependOnThreads) {
  for (const std::string& name : names) {
    const auto run = [&](int threads) {
      set_thread_count(threads);
      const auto model = model_of(name, 3);
      const Tensor x = random_tensor({3, 40, 33, 3}, DType::f32, cpu_device, 1);
      backward(cross_entropy((*model)(x), golden::step_labels(3, 3)));
      std::vector<std::vector<double>> values;
      for (const auto& [key, gradient] : gradients_of(*model)) values.push_back(values_of(gradient));
      set_thread_count(usable_cpus());
      return values;
    };
    EXPECT_EQ(run(1), run(3)) << name;
  }
}

TEST(Mobile, Images_MayHaveAnySize) {
  const NoGrad no_grad;
  for (const std::string& name : names) {
    const auto model = make_model({.model = name, .channels = 1, .classes = 2});
    model->eval();
    for (const auto& [height, width] : {std::pair{1, 1}, {1, 70}, {5, 3}, {33, 32}})
      for (const double value : values_of((*model)(ones({1, height, width, 1}))))
        EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(Mobile, InvalidInput_Throws) {
  EXPECT_EQ(error_text([] { MobileNetV3({.classes = 0}); }),
            "[linear] expected sizes of 1 or more, got 1024 and 0");
  EXPECT_EQ(error_text([] { MobileNetV3({.channels = 0}); }),
            "[conv2d] expected channel counts of 1 or more divisible by 1 groups, got 0 and 16");
  EXPECT_EQ(error_text([] { MobileNetV3({.dropout = 1}); }),
            "[dropout] expected a probability of 0 or more and less than 1, got 1");
  EXPECT_EQ(error_text([] { EfficientNet({.stochastic_depth = -0.5}); }),
            "[efficientnet] expected a stochastic depth of 0 or more and less than 1, got -0.5");
  EXPECT_EQ(error_text([] {
              EfficientNet({.classes = 2})(ones({8, 8, 3}));
            }),
            "[efficientnet] expected images (n, height, width, 3), got [8, 8, 3]");
  EXPECT_EQ(error_text([] {
              MobileNetV3({.classes = 2})(ones({1, 3, 8, 8}));
            }),
            "[mobilenet_v3] expected images (n, height, width, 3), got [1, 3, 8, 8]");
  EXPECT_EQ(error_text([] { StochasticDepth(1, 1, 1); }),
            "[stochastic_depth] expected a probability of 0 or more and less than 1, got 1");
}

}  // namespace
}  // namespace tandem
