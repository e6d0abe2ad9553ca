// tandem::probe() and its parts on small data.
#include "tandem/study/probe/probe.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tandem/files/safetensors.h"
#include "tandem/study/probe/probe_data.h"
#include "tandem/study/probe/probe_features.h"
#include "tandem/train/model_file.h"
#include "tests/core/error_text.h"
#include "tests/ops/op_test.h"
#include "tests/train/photo_folder.h"
#include "tests/train/shipped_file.h"

namespace tandem {
namespace {

class Probe : public testing::Test {
 protected:
  Probe() {
    write_photos(folder_ / "photos", 14);  // 11 and 11 for training, 3 and 3 for validation
    options_ = {.models = {"random"},
                .data = (folder_ / "photos").string(),
                .architecture = "cnn",
                .per_class = {4},
                .draws = 3,
                .image_size = 16};
  }

  TempFolder folder_;
  ProbeOptions options_;
};

TEST_F(Probe, ColorsOfPhotographs_AreSeparated) {
  options_.per_class = {8, 2};
  const ProbeReport report = probe(options_);
  EXPECT_EQ(report.tested_on, "validation");
  EXPECT_EQ(report.test_images, 6);
  EXPECT_EQ(report.classes, 2);
  EXPECT_EQ(report.majority_share, 0.5);
  const ProbedModel& model = report.models.at(0);
  EXPECT_EQ(model.weights, "random, statistics of 22 images");
  EXPECT_EQ(model.input, "16x16 RGB");
  EXPECT_EQ(model.features, 32 + 64 + 128);
  ASSERT_EQ(model.results.size(), 2U);
  EXPECT_EQ(model.results[0].per_class, 2);
  EXPECT_EQ(model.results[1].linear.accuracies, (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(model.results[1].nearest.accuracies, (std::vector<double>{1, 1, 1}));
}

TEST_F(Probe, SeveralModels_GetTheSameImages) {
  options_.data = "digits";
  options_.limit = 60;
  const ProbeReport alone = probe(options_);
  options_.models = {"random", "random"};
  const ProbeReport both = probe(options_);
  const ProbeResult &first = both.models[0].results[0], &second = both.models[1].results[0];
  EXPECT_EQ(first.linear.accuracies, alone.models[0].results[0].linear.accuracies);
  EXPECT_EQ(first.linear.accuracies, second.linear.accuracies);
  EXPECT_EQ(first.nearest.accuracies, second.nearest.accuracies);
  EXPECT_FALSE(first.linear.difference);
  EXPECT_EQ(second.linear.difference->interval.low, 0);
  EXPECT_EQ(second.linear.difference->interval.high, 0);
  EXPECT_GT(first.linear.accuracies[0], 0.2);
  EXPECT_LT(first.linear.accuracies[0], 1);
  options_.seed = 2;
  EXPECT_NE(probe(options_).models[0].results[0].linear.accuracies, first.linear.accuracies);
}

TEST_F(Probe, WeightsAndModelFile_GiveTheFeaturesOfTheModel) {
  ProbeModel random = load_probe_model("random", {.architecture = "cnn", .image_size = 16, .seed = 7});
  EXPECT_TRUE(random.calibrates);
  random.info.classes = {"a", "b"};
  const std::string model = (folder_ / "model.safetensors").string();
  const std::string weights = (folder_ / "weights.safetensors").string();
  save_model(model, *random.module, random.info);
  write_safetensors(weights, {.metadata = {}, .tensors = random.module->state_dict()});
  const ProbeData data = load_probe_data(options_.data, "", 1, {});
  const std::vector<std::int64_t> images{0, 5, 7};
  const Features expected = compute_features(random, *data.train.dataset, images);
  for (const std::string& file : {model, weights}) {
    ProbeModel loaded = load_probe_model(file, {.architecture = "cnn", .image_size = 16, .seed = 8});
    EXPECT_FALSE(loaded.calibrates);
    EXPECT_EQ(compute_features(loaded, *data.train.dataset, images).values, expected.values) << file;
  }
  // A model file states its architecture and size, which an image size replaces if it is asked for.
  EXPECT_EQ(load_probe_model(model, {.architecture = "resnet18", .image_size = 32}).info.height, 16);
  EXPECT_EQ(load_probe_model(model, {.image_size = 32, .resizes_all = true}).info.height, 32);
  EXPECT_NE(error_text([&] {
              load_probe_model(weights, {.architecture = "lenet", .image_size = 16});
            }).find("weights.safetensors: not the weights of this model: "),
            std::string::npos);
}

TEST_F(Probe, CalibratedStatistics_AreThoseOfTheImages) {
  ProbeModel model = load_probe_model("random", {.architecture = "cnn", .image_size = 16});
  const ProbeData data = load_probe_data(options_.data, "", 1, {});
  const std::vector<std::int64_t> images = readable_images(data.train);
  ASSERT_EQ(images.size(), 22U);
  calibrate_statistics(model, *data.train.dataset, images);
  EXPECT_FALSE(model.module->is_training());
  const Features features = compute_features(model, *data.train.dataset, images);
  // Half of a standard normal distribution, which ReLU leaves, has the mean 0.4.
  const double sum = std::accumulate(features.values.begin(), features.values.end(), 0.0);
  EXPECT_NEAR(sum / static_cast<double>(features.values.size()), 0.4, 0.05);
  calibrate_statistics(model, *data.train.dataset, images);  // from other statistics: the same
  EXPECT_EQ(compute_features(model, *data.train.dataset, images).values, features.values);
}

TEST_F(Probe, UnreadablePhotographs_AreLeftOutAndNamed) {
  put_bytes(folder_ / "photos/red/photo 101.png", "no image");  // of the training part
  put_bytes(folder_ / "photos/red/photo 106.png", "no image");  // of the validation part
  const ProbeReport report = probe(options_);
  EXPECT_EQ(report.test_images, 5);
  ASSERT_EQ(report.not_read.size(), 2U);
  EXPECT_NE(report.not_read[0].find("photo 101.png: "), std::string::npos) << report.not_read[0];
  options_.per_class = {11};
  EXPECT_EQ(error_text([&] { probe(options_); }),
            "[probe] expected 11 or more training images of every class, got 10 of 'red'");
}

TEST_F(Probe, TestFolder_IsUsedForTheAccuracy) {
  write_photos(folder_ / "parts/train", 8);
  write_photos(folder_ / "parts/test", 2, 50);
  options_.data = (folder_ / "parts").string();
  const ProbeReport report = probe(options_);
  EXPECT_EQ(report.tested_on, "test");
  EXPECT_EQ(report.test_images, 4);
}

TEST_F(Probe, Limit_TakesEvenlySpacedImages) {
  ProbeImages images{.dataset = nullptr, .labels = {0, 0, -1, 0, 1, 1, 1, 1}};
  EXPECT_EQ(readable_images(images), (std::vector<std::int64_t>{0, 1, 3, 4, 5, 6, 7}));
  EXPECT_EQ(readable_images(images, 2), (std::vector<std::int64_t>{1, 6}));
  EXPECT_EQ(readable_images(images, 70).size(), 7U);
}

TEST_F(Probe, Scenes_AreTheWeightsThatShip) {
  const ShippedFile file;
  const ProbeModelOptions options{.architecture = "resnet18", .image_size = 32, .seed = 1};
  EXPECT_NE(error_text([&] { load_probe_model("scenes", options); }).find(file.folder()), std::string::npos);
  file.write();
  const ProbeModel model = load_probe_model("scenes", options);
  EXPECT_EQ(model.weights, "scenes");
  EXPECT_FALSE(model.calibrates);
  const NamedTensors state = model.module->state_dict(), written = shipped_tensors().tensors;
  EXPECT_EQ(state.front().name, written.front().name);
  EXPECT_EQ(state.front().tensor.to_vector<float>(),
            cast(written.front().tensor, DType::f32).to_vector<float>());
}

TEST_F(Probe, BadModels_Throw) {
  options_.models = {"ranom"};
  EXPECT_EQ(error_text([&] { probe(options_); }),
            "[probe] expected one of random, imagenet, scenes, a run folder, or a file with a model or "
            "weights, got "
            "'ranom'; did you mean 'random'?");
  options_.models = {"imagenet"};
  EXPECT_EQ(error_text([&] { probe(options_); }),
            "[probe] expected a model with published ImageNet weights, got cnn");
  options_.models = {"scenes"};
  EXPECT_EQ(error_text([&] { probe(options_); }),
            "[weights] expected a model whose weights ship with Tandem (resnet18), got cnn");
  options_.models = {"random"};
  options_.architecture = "mlp";
  EXPECT_EQ(error_text([&] { probe(options_); }),
            "[probe] expected a model with a backbone, such as cnn or resnet18, got mlp");
  options_.architecture = "lenet";
  options_.image_size = 8;
  EXPECT_EQ(error_text([&] { probe(options_); }),
            "[probe] expected an image size of 12 or more for lenet, got 8");
}

}  // namespace
}  // namespace tandem
