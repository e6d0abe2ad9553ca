// The last layer fitted by logistic regression: its values, runs whose first epoch fits it, and bad input.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <numeric>

#include "tandem/files/safetensors.h"
#include "tandem/nn/model_registry.h"
#include "tandem/train/fit_head.h"
#include "tandem/train/logistic_regression.h"
#include "tandem/train/ranks.h"
#include "tests/device/device_cases.h"
#include "tests/train/photo_run.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

constexpr ImageInput input{.flat = false, .height = 16, .width = 16, .channels = 3};

std::unique_ptr<Module> new_cnn() {
  return make_model({.model = "cnn", .channels = 3, .classes = 2}, 3);
}

void expect_only_head_differs(const NamedTensors& before, const NamedTensors& after) {
  for (const NamedTensor& one : before) {
    const auto now = std::ranges::find(after, one.name, &NamedTensor::name);
    ASSERT_NE(now, after.end()) << one.name;
    const bool is_same = hash_text(now->tensor.to(cpu_device)) == hash_text(one.tensor);
    EXPECT_EQ(is_same, !one.name.starts_with("fc.")) << one.name;
  }
}

class FitHead : public testing::TestWithParam<Device> {};

// The layer takes the features as they are, logistic regression the standardized ones.
TEST_P(FitHead, Outputs_EqualLogisticRegressionOnStandardizedFeatures) {
  const std::unique_ptr<Module> module = new_cnn();
  module->to(GetParam());
  auto& model = dynamic_cast<BackboneModel&>(*module);
  const ImageSet images = tinted_images(14);
  const std::unique_ptr<Module> untouched = new_cnn();
  const std::vector<float> values = compute_features(model, images.images, input).to_vector<float>();
  const Evaluation fitted = fit_head(model, images, input);

  const Features features{.count = 14, .width = model.feature_count(), .values = values};
  std::vector<std::int64_t> all(14);
  std::iota(all.begin(), all.end(), 0);
  const FeatureRows rows = Standardization(features, all)(features, all);
  const LogisticModel expected = fit_logistic(rows, images.labels.to_vector<std::int32_t>(), 2);
  const std::vector<float> outputs = compute_outputs(model, images.images, input).to_vector<float>();
  double loss = 0;
  for (std::int64_t i = 0; i < 14; ++i) {
    double logits[2];
    for (const int c : {0, 1}) {
      const double* const weights = expected.weights.data() + c * (rows.width + 1);
      logits[c] = std::inner_product(rows.row(i), rows.row(i) + rows.width, weights, weights[rows.width]);
      EXPECT_NEAR(outputs[static_cast<std::size_t>(2 * i + c)], logits[c], 2e-4 * (1 + std::abs(logits[c])));
    }
    loss += std::log1p(std::exp(logits[1 - i % 2] - logits[i % 2])) / 14;
  }
  EXPECT_EQ(fitted.accuracy, 1);
  EXPECT_NEAR(fitted.loss, loss, 1e-5);
  expect_only_head_differs(untouched->state_dict(), module->state_dict());
}

// Dropout before the last layer takes no part.
TEST_P(FitHead, ModelWithDropout_IsEvaluatedWithoutIt) {
  const std::unique_ptr<Module> module =
      make_model({.model = "mobilenet_v3_small", .channels = 3, .classes = 2}, 3);
  module->to(GetParam());
  const ImageSet images = tinted_images(14);
  const Evaluation fitted = fit_head(dynamic_cast<BackboneModel&>(*module), images, input);
  EXPECT_TRUE(module->is_training());
  const Evaluation evaluated = evaluate(*module, images, LossKind::cross_entropy, input);
  EXPECT_NEAR(fitted.loss, evaluated.loss, 1e-5 * (1 + evaluated.loss));
}

INSTANTIATE_TEST_SUITE_P(Devices, FitHead, testing::ValuesIn(test_devices()), device_name);

TEST(FitHeadErrors, OneClass_Throws) {
  const std::unique_ptr<Module> module = new_cnn();
  ImageSet images = tinted_images(2);
  images.classes = {"blue"};
  EXPECT_EQ(error_text([&] { fit_head(dynamic_cast<BackboneModel&>(*module), images, input); }),
            "[train] expected two classes or more for fit_head, got 1");
}

TEST(FitHeadErrors, FeaturesThatAreNotFinite_Throw) {
  const std::unique_ptr<Module> module = new_cnn();
  module->state_dict().front().tensor.data<float>()[0] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(error_text([&] {
                fit_head(dynamic_cast<BackboneModel&>(*module), tinted_images(4), input);
              }).starts_with("[train] expected finite features of the training images, got "));
}

class FitHeadRun : public PhotoRunCase {
 protected:
  TrainResult run(const std::string& name, std::int64_t epochs, bool resume = false,
                  const FitCallbacks& callbacks = {}) {
    options_.epochs = epochs;
    options_.run_folder = folder_ / name;
    options_.resume = resume;
    return train(options_, callbacks);
  }
};

// They start again with the fitted layer, not with the random one.
TEST_F(FitHeadRun, AveragedWeights_AreThoseOfTheFittedLayer) {
  run("plain", 1);
  options_.ema = 0.9;
  run("averaged", 1);
  EXPECT_EQ(weights_of(read_safetensors(folder_ / "averaged/best.safetensors")),
            weights_of(read_safetensors(folder_ / "plain/best.safetensors")));
}

TEST_F(FitHeadRun, FirstEpoch_ChangesTheLastLayerOnly) {
  const TrainResult result = run("run", 1);
  ASSERT_EQ(result.epochs.size(), 1u);
  const EpochRecord& record = result.epochs.front();
  EXPECT_EQ(record.epoch, 1);
  EXPECT_EQ(record.train_accuracy, 1);
  EXPECT_LT(record.train_loss, 0.1);
  EXPECT_EQ(record.learning_rate, 0);
  EXPECT_EQ(result.best_epoch, 1);
  EXPECT_EQ(result.test_accuracy, 1);
  const std::string page = get_bytes(folder_ / "run/report.html");
  EXPECT_NE(page.find("fitted by logistic regression in epoch 1"), std::string::npos);
  EXPECT_NE(page.find("the only epoch: nothing was chosen"), std::string::npos);
  const std::size_t options = page.find("<summary>All options");
  ASSERT_NE(options, std::string::npos);
  for (const char* const words : {"optimizer", "augmentation", "expect less"})
    EXPECT_GT(page.find(words), options) << words;
  const auto initial = make_model({.model = "cnn", .channels = 3, .classes = 2}, options_.seed);
  expect_only_head_differs(initial->state_dict(), read_safetensors(folder_ / "run/best.safetensors").tensors);
}

TEST_F(FitHeadRun, LaterEpochs_TrainOnAndResumeWithTheSameBits) {
  const TrainResult whole = run("whole", 3);
  ASSERT_EQ(whole.epochs.size(), 3u);
  EXPECT_GT(whole.epochs[1].learning_rate, 0);
  int polls = 3;
  ASSERT_EQ(run("stopped", 3, false, {.stop_signal = [&] { return --polls == 0 ? SIGTERM : 0; }}).stopped_by,
            SIGTERM);
  const TrainResult resumed = run("stopped", 3, true);
  ASSERT_EQ(resumed.epochs.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(resumed.epochs[i].train_loss, whole.epochs[i].train_loss);
    EXPECT_EQ(resumed.epochs[i].val_loss, whole.epochs[i].val_loss);
  }
}

TEST_F(FitHeadRun, UnreadablePhotograph_IsSkippedAndListed) {
  put_bytes(folder_ / "photos/red/photo 101.png", "no image");
  EXPECT_EQ(run("run", 1).epochs.front().train_accuracy, 1);
  EXPECT_NE(get_bytes(folder_ / "run/bad-images.csv").find("photo 101.png"), std::string::npos);
}

TEST_F(FitHeadRun, OptionsThatContradict_Throw) {
  options_.keep_head = true;
  options_.pretrained = "weights.pth";
  EXPECT_EQ(error_text([&] { run("run", 1); }),
            "[train] expected keep_head or fit_head, which replaces the last layer, got both");
  TrainOptions perceptron;
  perceptron.fit_head = true;
  EXPECT_EQ(error_text([&] { check_options(perceptron); }),
            "[train] fit_head requires a model of images, got mlp");
}

}  // namespace
}  // namespace tandem
