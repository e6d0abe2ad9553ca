// Class activation maps compared with PyTorch's (tests/golden/make_explain.py), and their place in
// photographs.
#include "tandem/train/explain/explain.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tandem/image/example_photo.h"
#include "tandem/nn/conv2d.h"
#include "tandem/nn/linear.h"
#include "tandem/nn/model_registry.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/conv/pool.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/matmul.h"
#include "tandem/train/explain/explain_report.h"
#include "tests/core/error_text.h"
#include "tests/nn/resnet_case.h"
#include "tests/train/photo_folder.h"

namespace tandem {
namespace {

std::unique_ptr<Module> model_of(const golden::Case& one, Device device) {
  auto model =
      make_model({.model = one.params.at("model"), .channels = 3, .classes = one.params.at("classes")}, 1);
  NamedTensors state = golden::hashed_state(*model, one.params.at("salt"));
  std::erase_if(state, [](const NamedTensor& each) { return each.name.ends_with(".step"); });  // dropout's
  model->load_state_dict(with_step_counters(state, *model));
  model->to(device);
  return model;
}

class ExplainOnDevice : public testing::TestWithParam<Device> {};

TEST_P(ExplainOnDevice, Maps_EqualPyTorch) {
  for (const golden::Case& one : golden::load("explain")) {
    SCOPED_TRACE(one.name);
    const auto model = model_of(one, GetParam());
    const std::vector<std::int64_t> targets = one.params.at("targets");
    for (const auto& [method, key] : {std::pair{ActivationMethod::grad_cam, "grad_cam"},
                                      std::pair{ActivationMethod::layer_cam, "layer_cam"}}) {
      const Tensor maps = class_activation_maps(*model, images_of(one, GetParam()), targets, method);
      const std::vector<std::int64_t>& shape = one.array(key).shape;
      EXPECT_EQ(maps.shape(), Shape(std::span<const std::int64_t>(shape)));
      EXPECT_EQ(maps.device(), GetParam());
      EXPECT_LE(relative_error(values_of(maps), one.array(key).values<double>()), 1e-4) << key;
    }
  }
}

TEST_P(ExplainOnDevice, MapsInBf16_AreCloseToPyTorch) {
  for (const golden::Case& one : golden::load("explain")) {
    SCOPED_TRACE(one.name);
    const auto model = model_of(one, GetParam());
    const std::vector<std::int64_t> targets = one.params.at("targets");
    const MatmulPrecisionScope scope(MatmulPrecision::bf16);
    for (const auto& [method, key] : {std::pair{ActivationMethod::grad_cam, "grad_cam"},
                                      std::pair{ActivationMethod::layer_cam, "layer_cam"}}) {
      const Tensor maps =
          class_activation_maps(*model, cast(images_of(one, GetParam()), DType::bf16), targets, method);
      EXPECT_EQ(maps.dtype(), DType::f32);
      const double error = relative_error(values_of(maps), one.array(key).values<double>());
      EXPECT_LE(error, 5e-2) << key;
      EXPECT_GT(error, 5e-4) << key;  // it is bf16
    }
  }
}

TEST_P(ExplainOnDevice, Model_IsLeftAsItWas) {
  const auto model = make_model({.model = "cnn", .channels = 3, .classes = 4}, 1);
  model->to(GetParam());
  const Tensor x = random_tensor({2, 20, 24, 3}, DType::f32, GetParam(), 1);
  const std::vector<std::int64_t> classes{0, 3};
  for (NamedTensor& parameter : model->parameters())
    parameter.tensor.set_grad(ones(parameter.tensor.shape(), DType::f32, GetParam()));
  const auto before = values_of(class_activation_maps(*model, x, classes));
  EXPECT_TRUE(model->is_training());
  for (const NamedTensor& parameter : model->parameters())
    EXPECT_EQ(values_of(parameter.tensor.grad()),
              std::vector<double>(static_cast<std::size_t>(parameter.tensor.numel()), 1.0))
        << parameter.name;
  for (const NamedTensor& buffer : model->buffers())  // evaluation: statistics do not move
    if (buffer.name.ends_with("num_batches_tracked")) {
      EXPECT_EQ(values_of(buffer.tensor).front(), 0);
    }
  model->freeze();
  EXPECT_EQ(values_of(class_activation_maps(*model, x, classes)), before);
  EXPECT_THROW(class_activation_maps(*model, x, std::vector<std::int64_t>{0}), Error);
  EXPECT_THROW(class_activation_maps(*model, x, std::vector<std::int64_t>{0, 4}), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, ExplainOnDevice, testing::ValuesIn(test_devices()), device_name);

// Its map is known: channel 0 of the convolution copies the red channel, and the head of class 0 adds it.
struct RedNet : Module {
  Conv2d conv{3, 2, {.kernel = {1, 1}, .bias = false}};
  Linear head{2, 2, {}};
  RedNet() {
    add_children({{"conv", conv}, {"head", head}});
    load_state_dict({{"conv.weight", Tensor::from(std::vector<float>{1, 0, 0, 0, 0, 1}, {2, 3, 1, 1})},
                     {"head.weight", Tensor({{1., 0.}, {0., 1.}})},
                     {"head.bias", Tensor({0., 0.})}});
  }
  Tensor forward(const Tensor& x) override {
    return head(adaptive_avg_pool2d(relu(conv(x)), {1, 1}).reshape({x.size(0), 2}));
  }
};

// Without a pool the gradient differs from pixel to pixel. The convolution copies both channels, and the
// output is 1·a₀ + 3·a₁ − b₀ + 5·b₁ of the pixels 0 and 1.
struct TwoPixelNet : Module {
  Conv2d conv{2, 2, {.kernel = {1, 1}, .bias = false}};
  Linear head{4, 1, {}};
  TwoPixelNet() {
    add_children({{"conv", conv}, {"head", head}});
    load_state_dict({{"conv.weight", Tensor::from(std::vector<float>{1, 0, 0, 1}, {2, 2, 1, 1})},
                     {"head.weight", Tensor({{1., -1., 3., 5.}})},
                     {"head.bias", Tensor({0.})}});
  }
  Tensor forward(const Tensor& x) override { return head(conv(x).reshape({x.size(0), 4})); }
};

TEST(Explain, GradientsThatDiffer_AreAveragedByGradCamOnly) {
  TwoPixelNet net;
  const Tensor x = Tensor::from(std::vector<float>{10, 1, 20, 2}, {1, 1, 2, 2});
  const std::int64_t target = 0;
  // The mean gradients of the channels are (1 + 3) / 2 and (-1 + 5) / 2.
  EXPECT_EQ(values_of(class_activation_maps(net, x, {&target, 1}, ActivationMethod::grad_cam)),
            (std::vector<double>{10 * 2 + 1 * 2, 20 * 2 + 2 * 2}));
  EXPECT_EQ(values_of(class_activation_maps(net, x, {&target, 1}, ActivationMethod::layer_cam)),
            (std::vector<double>{10 * 1 + 1 * 0, 20 * 3 + 2 * 5}));
}

ModelInfo red_info(const std::string& transform) {
  return {.architecture = {.model = "cnn", .channels = 3, .classes = 2},
          .classes = {"red", "blue"},
          .height = 16,
          .width = 16,
          .channels = 3,
          .norm = {.mean = {0, 0, 0}, .stddev = {1, 1, 1, 1}},
          .transform = transform};
}

Model red_model(const std::string& transform) {
  return {.info = red_info(transform), .module = std::make_unique<RedNet>()};
}

// Black with a red square of 20 pixels at (x, y).
Image red_square(std::int64_t height, std::int64_t width, std::int64_t x, std::int64_t y) {
  Image image = make_image(height, width, 3);
  for (std::int64_t i = y; i < y + 20; ++i)
    for (std::int64_t k = x; k < x + 20; ++k) image.at(i, k, 0) = 255;
  return image;
}

int brightness(const Image& image, std::int64_t y, std::int64_t x) {
  return image.at(y, x, 0) + image.at(y, x, 1) + image.at(y, x, 2);
}

TEST(Explain, Map_LiesOverWhatItIsOf) {
  for (const char* transform : {"resize", "center 20", "letterbox"})
    for (const auto& [height, width] : {std::pair{120, 200}, {200, 120}, {64, 64}}) {
      SCOPED_TRACE(fmt::format("{} {}x{}", transform, width, height));
      Model model = red_model(transform);
      const std::int64_t x = width / 2 + 4, y = height / 2 - 20;
      const Image photo = red_square(height, width, x, y);
      for (const ActivationMethod method : {ActivationMethod::grad_cam, ActivationMethod::layer_cam}) {
        const Explanation explanation = explain_image(model, photo, {.method = method});
        EXPECT_EQ(explanation.prediction.class_name, "red");
        EXPECT_GT(explanation.peak, 0);
        const Image overlay = render_heat(photo, explanation.heat);
        EXPECT_GT(brightness(overlay, y + 10, x + 10), 300);
        EXPECT_LT(brightness(overlay, y + 10, x - 20), 150);
        EXPECT_LT(brightness(overlay, y + 45, x + 10), 150);
      }
    }
}

TEST(Explain, CenterCrop_CoversItsPartOfThePhotograph) {
  Model model = red_model("center 20");
  const HeatMap heat = explain_image(model, red_square(100, 200, 100, 40)).heat;
  EXPECT_DOUBLE_EQ(heat.x, 60);  // 12 of 40 columns
  EXPECT_DOUBLE_EQ(heat.y, 10);
  EXPECT_DOUBLE_EQ(heat.covered_width, 80);
  EXPECT_DOUBLE_EQ(heat.covered_height, 80);
  // 101 rows become 20, and 200 columns 39: the scales differ.
  const HeatMap odd = explain_image(model, red_square(101, 200, 100, 40)).heat;
  EXPECT_DOUBLE_EQ(odd.x, 12 * 200 / 39.0);
  EXPECT_DOUBLE_EQ(odd.y, 2 * 101 / 20.0);
  EXPECT_DOUBLE_EQ(odd.covered_width, 16 * 200 / 39.0);
  EXPECT_DOUBLE_EQ(odd.covered_height, 16 * 101 / 20.0);
}

TEST(Explain, Letterbox_CoversMoreThanThePhotograph) {
  Model model = red_model("letterbox 90");
  const HeatMap heat = explain_image(model, red_square(100, 200, 100, 40)).heat;
  EXPECT_DOUBLE_EQ(heat.x, 0);
  EXPECT_DOUBLE_EQ(heat.y, -50);  // 4 of 16 rows are padding, above and below
  EXPECT_DOUBLE_EQ(heat.covered_width, 200);
  EXPECT_DOUBLE_EQ(heat.covered_height, 200);
}

TEST(Explain, OtherClass_HasItsOwnMap) {
  Model model = red_model("resize");
  const Explanation blue = explain_image(model, red_square(64, 64, 20, 20), {.class_name = "blue"});
  EXPECT_EQ(blue.explained, 1u);
  EXPECT_EQ(blue.prediction.class_name, "red");
  EXPECT_EQ(blue.peak, 0);  // nothing is blue
  EXPECT_EQ(std::ranges::max(blue.heat.values), 0);
  EXPECT_EQ(error_text([&] { explain_image(model, red_square(64, 64, 20, 20), {.class_name = "blu"}); }),
            "[explain] expected a class of the model (red, blue), got 'blu'; did you mean 'blue'?");
}

TEST(Explain, EveryRegisteredModelWithConvolutions_HasAMapInEveryPrecision) {
  for (const ModelRow& row : models().rows()) {
    if (row.flat_input) continue;
    SCOPED_TRACE(row.name);
    ModelInfo info = red_info("resize");
    info.architecture.model = row.name;
    info.height = info.width = 65;
    Model model{.info = info, .module = make_model(info.architecture, 1)};
    for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
      const MatmulPrecisionScope scope(precision);
      const Explanation explanation = explain_image(model, example_photo(50, 70));
      EXPECT_GT(explanation.heat.height * explanation.heat.width, 1);
      EXPECT_EQ(explanation.heat.covered_width, 70);
    }
  }
}

TEST(Explain, Perceptron_IsRefused) {
  Model model{.info = {.architecture = {.model = "mlp", .layers = {64, 4, 2}},
                       .classes = {"a", "b"},
                       .height = 8,
                       .width = 8,
                       .channels = 1},
              .module = nullptr};
  model.module = make_model(model.info.architecture, 1);
  EXPECT_EQ(error_text([&] { explain_image(model, example_photo(20, 20)); }),
            "[explain] expected a model with convolutions, which class activation maps need, got mlp "
            "64,4,2 sigmoid, which has none");
}

TEST(Explain, Paths_AreBoundedAndUnreadableOnesSay) {
  const TempFolder folder;
  write_photos(folder / "photos", 20);
  std::ofstream(folder / "photos" / "blue" / "photo 100.png") << "not an image";
  Model model = red_model("resize");
  std::size_t calls = 0;
  const ExplainedImages some =
      explain_paths(model, {(folder / "photos").string()},
                    {.count = 4, .on_progress = [&](std::size_t, std::size_t all) { calls += all == 4; }});
  EXPECT_EQ(some.files, 40u);
  EXPECT_EQ(calls, 4u);
  ASSERT_EQ(some.images.size(), 4u);
  EXPECT_NE(some.images[0].prediction.error, "");
  EXPECT_TRUE(some.images[1].prediction.path.ends_with("blue/photo 110.png"));
  EXPECT_TRUE(some.images[3].prediction.path.ends_with("red/photo 110.png"));
  EXPECT_EQ(some.images[3].truth, 0u);
  EXPECT_EQ(some.images[3].photo.height, 168);  // 24, enlarged 7 times
  EXPECT_EQ(some.images[3].overlay.width, 140);
  const Image sheet = explain_sheet(some, model.info);
  EXPECT_GT(sheet.width, 2 * 2 * 140);
  EXPECT_THROW(explain_paths(model, {"."}, {.count = 0}), Error);
  EXPECT_THROW(explain_paths(model, {"."}, {.count = max_explained_images + 1}), Error);
  EXPECT_THROW(explain_paths(model, {(folder / "photos").string()}, {.class_name = "green"}), Error);

  save_png(folder / "large.png", red_square(500, 700, 10, 10));
  const std::string large = (folder / "large.png").string();
  EXPECT_EQ(explain_paths(model, {large}).images[0].overlay.width, 700);
  EXPECT_EQ(explain_paths(model, {large, large}).images[0].overlay.width, 384);
  EXPECT_EQ(explain_paths(model, {large}, {.max_side = 70}).images[0].overlay.height, 50);
  EXPECT_NE(explain_paths(model, {"absent.png"}).images[0].prediction.error, "");
}

}  // namespace
}  // namespace tandem
