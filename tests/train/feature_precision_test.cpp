// The last layer of a frozen backbone, trained over features in bf16 and in 8-bit integers.
#include <gtest/gtest.h>

#include <csignal>

#include "tandem/nn/model_registry.h"
#include "tandem/nn/resnet.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/matmul.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/calibrate_network.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/fit.h"
#include "tandem/train/fit_head.h"
#include "tandem/train/low_precision_features.h"
#include "tests/train/photo_run.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

constexpr ImageInput input{.flat = false, .height = 16, .width = 16, .channels = 3};

std::unique_ptr<ResNet> new_resnet() {
  auto model = std::make_unique<ResNet>(ResNetOptions{.depth = 18, .classes = 2, .seed = 3});
  model->freeze_backbone();
  return model;
}

using HeadValues = std::vector<std::vector<float>>;

HeadValues head_of(BackboneModel& model) {
  HeadValues values;
  for (const NamedTensor& each : model.head_layer().parameters())
    values.push_back(each.tensor.detach().to_vector<float>());
  return values;
}

// The features of all images, as the precision has them.
Tensor expected_features(ResNet& model, FeaturePrecision precision, const Tensor& images) {
  const NoGrad no_grad;
  model.eval();
  const Tensor x = network_input(images, input, DType::f32);
  if (precision == FeaturePrecision::int8)
    return calibrate_network(model, images, input, std::nullopt, ComparedBy::features).network->features(x);
  if (precision == FeaturePrecision::automatic) return model.features(x);
  const MatmulPrecisionScope scope(MatmulPrecision::bf16);
  return model.features(cast(x, DType::bf16));
}

HeadValues fitted_head(FeaturePrecision precision, const ImageSet& images) {
  const auto model = new_resnet();
  const Tensor features = expected_features(*model, precision, images.images);
  fit_head(*model, {.computed = features,
                    .rows = {.count = images.count(),
                             .width = model->feature_count(),
                             .values = features.to_vector<float>()},
                    .labels = images.labels.to_vector<std::int32_t>(),
                    .classes = 2});
  return head_of(*model);
}

class FeaturePrecisionRun : public testing::TestWithParam<FeaturePrecision> {
 protected:
  FeaturePrecisionRun() {
    options_.batch_size = 4;
    options_.workers = 0;
    options_.feature_precision = GetParam();
  }

  TrainResult run(BackboneModel& model, const std::string& name, const FitCallbacks& callbacks = {}) {
    options_.run_folder = folder_ / name;
    return fit(model, ImageDataset(train_), ImageDataset(test_), options_, callbacks);
  }

  TempFolder folder_;
  FitOptions options_;
  ImageSet train_ = tinted_images(12), test_ = tinted_images(10, 100);
};

// The images are few: all of them choose the ranges.
TEST_P(FeaturePrecisionRun, FittedLayer_IsThatOfTheFeatures) {
  options_.epochs = 1;
  options_.fit_head = true;
  const auto model = new_resnet();
  const TrainResult result = run(*model, "run");
  EXPECT_EQ(head_of(*model), fitted_head(GetParam(), train_));
  EXPECT_NE(head_of(*model), fitted_head(FeaturePrecision::automatic, train_));
  EXPECT_EQ(result.test_accuracy, 1);
  EXPECT_EQ(result.fp32_accuracy, 1);
  EXPECT_EQ(result.same_class, 1);
  const std::string page = get_bytes(folder_ / "run/report.html");
  EXPECT_NE(page.find("with features in fp32"), std::string::npos);
  EXPECT_NE(page.find(GetParam() == FeaturePrecision::bf16 ? "bf16" : "int8, ranges by"), std::string::npos);
  EXPECT_NE(get_bytes(folder_ / "run/report.json").find("\"fp32_accuracy\""), std::string::npos);
}

// A head that classifies by the difference of the precisions: what is measured in which is not the same.
TEST_P(FeaturePrecisionRun, Accuracies_AreThoseOfBothPrecisions) {
  options_.epochs = 1;
  options_.learning_rate = 1e-9;  // the head stays as it is, or nearly
  const auto model = new_resnet();
  const Tensor low = expected_features(*model, GetParam(), train_.images),
               exact = expected_features(*model, FeaturePrecision::automatic, train_.images);
  const std::vector<float> l = low.to_vector<float>(), e = exact.to_vector<float>();
  std::size_t at = 0;  // where a feature of the first image differs most, as a share of its size
  for (std::size_t i = 0; i < static_cast<std::size_t>(model->feature_count()); ++i)
    if (std::abs(l[i] - e[i]) > std::abs(l[at] - e[at])) at = i;
  ASSERT_NE(l[at], e[at]);
  const float middle = (l[at] + e[at]) / 2, slope = 1e4f / std::abs(l[at] - e[at]);
  std::vector<float> weight(2 * static_cast<std::size_t>(model->feature_count()));
  weight[at] = l[at] > e[at] ? slope : -slope;  // class 0 of the first image, which is right, in `low` alone
  model->head_layer().load_state_dict(
      {{"weight", Tensor::from(weight, {2, model->feature_count()})},
       {"bias", Tensor::from(std::vector<float>{-weight[at] * middle, 0}, {2})}});
  test_ = train_.slice(0, 1);
  const TrainResult result = run(*model, "run");
  EXPECT_EQ(result.test_accuracy, 1);
  EXPECT_EQ(result.fp32_accuracy, 0);
  EXPECT_EQ(result.same_class, 0);
  EXPECT_EQ(result.epochs.front().val_accuracy, 1);
  EXPECT_EQ(evaluate(*model, test_, LossKind::cross_entropy, input).accuracy, 0);  // fp32 after the run
}

TEST_P(FeaturePrecisionRun, Steps_ChangeTheLastLayerOnly_AndResumeWithTheSameBits) {
  options_.epochs = 3;
  const auto whole = new_resnet(), stopped = new_resnet(), untouched = new_resnet();
  run(*whole, "whole");
  for (std::size_t i = 0; i < whole->state_dict().size(); ++i) {
    const NamedTensor now = whole->state_dict()[i], before = untouched->state_dict()[i];
    if (now.name.ends_with("num_batches_tracked")) continue;
    EXPECT_EQ(now.tensor.to_vector<float>() == before.tensor.to_vector<float>(), !now.name.starts_with("fc."))
        << now.name;
  }
  int polls = 3;
  ASSERT_EQ(run(*stopped, "stopped", {.stop_signal = [&] { return --polls == 0 ? SIGTERM : 0; }}).stopped_by,
            SIGTERM);
  options_.resume = true;
  const auto resumed = new_resnet();
  run(*resumed, "stopped");
  expect_same_weights(folder_ / "whole", folder_ / "stopped");
  options_.resume = false;
  options_.feature_precision = FeaturePrecision::automatic;
  const auto exact = new_resnet();
  exact->freeze_statistics();
  run(*exact, "exact");
  EXPECT_NE(head_of(*exact), head_of(*whole));
}

INSTANTIATE_TEST_SUITE_P(Precisions, FeaturePrecisionRun,
                         testing::Values(FeaturePrecision::bf16, FeaturePrecision::int8),
                         [](const auto& test) {
                           return test.param == FeaturePrecision::bf16 ? "bf16" : "int8";
                         });

TEST(LowPrecisionFeatures, End_WithTheirObject) {
  const auto model = new_resnet();
  model->eval();
  const Tensor images = tinted_images(4).images, x = network_input(images, input, DType::f32);
  const std::vector<float> exact = model->features(x).to_vector<float>();
  {
    const LowPrecisionFeatures low(*model, FeaturePrecision::int8, images, input);
    EXPECT_NE(model->head_input(x).to_vector<float>(), exact);
    EXPECT_EQ(model->head(model->head_input(x)).to_vector<float>(), model->forward(x).to_vector<float>());
    EXPECT_EQ(model->features(x).to_vector<float>(), exact);
    EXPECT_TRUE(low.description().ends_with(" of 4 training images")) << low.description();
  }
  EXPECT_EQ(model->head_input(x).to_vector<float>(), exact);
}

class FeaturePrecisionTrain : public PhotoRunCase {
 protected:
  FeaturePrecisionTrain() {
    options_.model = "resnet18";
    options_.freeze = true;
    options_.image_size = 32;
    options_.feature_precision = FeaturePrecision::int8;
  }
  std::string error() {
    return error_text([&] { train(options_); });
  }
};

TEST_F(FeaturePrecisionTrain, Folds_AreMeasuredInBoth) {
  options_.folds = 3;
  const TrainResult result = train(options_);
  EXPECT_EQ(result.folds.size(), 3u);
  EXPECT_EQ(result.test_count, 18);
  EXPECT_GT(result.test_accuracy, 0.8);
  EXPECT_GT(result.fp32_accuracy, 0.8);
  EXPECT_GT(result.same_class, 0.8);
  EXPECT_NE(get_bytes(folder_ / "run/config.toml").find("feature_precision = \"int8\""), std::string::npos);
  EXPECT_NE(get_bytes(folder_ / "run/config.toml").find("freeze_bn = true"), std::string::npos);
}

TEST_F(FeaturePrecisionTrain, WhatItCannotDo_Throws) {
  options_.folds = 3;
  options_.fit_head = false;
  EXPECT_EQ(error(),
            "[train] folds with feature_precision require fit_head and one epoch, got gradient steps");
  options_.folds = 0;
  options_.freeze = false;
  EXPECT_EQ(error(), "[train] feature_precision requires freeze: it is for layers that are not trained");
  options_.freeze = true;
  options_.epochs = 2;
  options_.unfreeze_at = 2;
  EXPECT_EQ(error(), "[train] feature_precision requires layers that stay frozen, got unfreeze_at 2");
  options_.unfreeze_at = 0;
  options_.device = Device{Backend::cuda, 0};
  EXPECT_EQ(error(),
            "[train] feature_precision is for the CPU, got device cuda:0: on a GPU use precision bf16");
  options_.device = cpu_device;
  options_.model = "cnn";
  EXPECT_EQ(error(),
            "[train] feature_precision int8 requires a ResNet (resnet18, resnet34, resnet50), got cnn");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

}  // namespace
}  // namespace tandem
