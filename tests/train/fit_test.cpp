// fit(): a user's module on a user's data set gets everything that the train command has.
#include "tests/train/fit_case.h"

#include <algorithm>
#include <atomic>
#include <csignal>

#include "tandem/data/photo_store.h"
#include "tandem/files/read_file.h"
#include "tandem/nn/conv2d.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/reduce.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/train/classifier.h"
#include "tandem/train/device_choice.h"
#include "tandem/train/evaluate.h"
#include "tests/train/photo_folder.h"

namespace tandem {
namespace {

using Fit = FitCase;

TEST_F(Fit, OwnModuleAndData_LearnsInPlaceAndWritesRunFolder) {
  options_.epochs = 12;
  TinyNet model;
  model.eval();
  std::vector<std::string> messages;
  std::vector<int> epochs;
  const TrainResult result =
      run(model, "run",
          {.on_message = [&](const std::string& line) { messages.push_back(line); },
           .on_progress = [](const ProgressState& state) { EXPECT_LE(state.position, state.total); },
           .on_epoch = [&](const EpochRecord& record) { epochs.push_back(record.epoch); }});
  EXPECT_EQ(messages.at(0), "Data: data, 60 training and 30 validation images, 8x8 gray, 2 classes");
  EXPECT_EQ(epochs.size(), 12u);
  EXPECT_GT(result.test_accuracy, 0.85);
  EXPECT_EQ(result.tested_on, "validation");
  EXPECT_FALSE(model.is_training());
  const EpochRecord& best = result.epochs[static_cast<std::size_t>(result.best_epoch) - 1];
  EXPECT_EQ(result.test_accuracy, best.val_accuracy);
  EXPECT_EQ(result.test_loss, best.val_loss);

  const RunFolder folder{folder_ / "run"};
  NamedTensors weights = model.state_dict();
  std::erase_if(weights, [](const NamedTensor& one) { return one.name == "dropout.step"; });
  EXPECT_EQ(values_of(weights), values_of(read_safetensors(folder.best()).tensors));
  const std::string config = get_bytes(folder.config());
  EXPECT_EQ(config.substr(0, config.find('\n')), "model = \"custom\"");
  EXPECT_NE(config.find("augment = \"shift -1 1\""), std::string::npos) << config;
  EXPECT_EQ(config.find("layers"), std::string::npos) << config;
  const std::string log = get_bytes(folder.log());
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 13);
  const std::string page = get_bytes(folder.report());
  EXPECT_NE(page.find("custom on data"), std::string::npos);
  EXPECT_NE(page.find("validation accuracy"), std::string::npos);
  EXPECT_GT(std::filesystem::file_size(folder.events()), 100u);
}

// The validation of the best epoch is also the result; only the worst mistakes are shown to the model again.
TEST_F(Fit, BestEpoch_IsNotEvaluatedTwice) {
  struct CountingNet : TinyNet {
    Tensor forward(const Tensor& x) override {
      if (!is_training()) evaluated += x.size(0);
      return TinyNet::forward(x);
    }
    std::int64_t evaluated = 0;
  } model;
  run(model, "run");
  EXPECT_GE(model.evaluated, options_.epochs * validation_.size());
  EXPECT_LT(model.evaluated, (options_.epochs + 1) * validation_.size());
}

TEST_F(Fit, StoppedAnywhere_ResumesWithSameBits) {
  options_.metrics = {
      {"sum", [](const Tensor& outputs, const Tensor&) { return sum(outputs).item<float>(); }}};
  TinyNet whole;
  const TrainResult expected = run(whole, "whole");
  for (const int polls : {1, 2, 3, 4}) {
    const std::string name = "stopped" + std::to_string(polls);
    int left = polls;
    options_.resume = false;
    TinyNet stopped;
    ASSERT_EQ(run(stopped, name, {.stop_signal = [&] { return --left == 0 ? SIGTERM : 0; }}).stopped_by,
              SIGTERM);
    options_.resume = true;
    options_.workers = polls % 2;
    TinyNet resumed;
    const TrainResult result = run(resumed, name);
    expect_same_weights(folder_ / "whole", folder_ / name);
    EXPECT_EQ(values_of(resumed.state_dict()), values_of(whole.state_dict()));
    ASSERT_EQ(result.epochs.size(), expected.epochs.size());
    for (std::size_t i = 0; i < expected.epochs.size(); ++i) {
      EXPECT_EQ(result.epochs[i].val_loss, expected.epochs[i].val_loss);
      EXPECT_EQ(result.epochs[i].metrics.at(0).value, expected.epochs[i].metrics.at(0).value);
    }
    EXPECT_EQ(result.test_loss, expected.test_loss);
  }
}

TEST_F(Fit, FinishedRunResumed_RestoresBestWeights) {
  TinyNet first, second;
  const TrainResult expected = run(first, "run");
  options_.resume = true;
  const TrainResult again = run(second, "run");
  EXPECT_EQ(values_of(second.state_dict()), values_of(first.state_dict()));
  EXPECT_EQ(again.test_loss, expected.test_loss);
  EXPECT_EQ(again.epochs.size(), 3u);
}

TEST_F(Fit, InMemoryDataset_GivesSameBitsAsOwnDataset) {
  const auto stored = [](const Bars& bars) {
    std::vector<std::uint8_t> pixels;
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < bars.size(); ++i) {
      const Image image = bars.image(i);
      pixels.insert(pixels.end(), image.pixels.begin(), image.pixels.end());
      labels.push_back(bars.label(i));
    }
    return ImageDataset({.images = Tensor::from(pixels, {bars.size(), 8, 8, 1}),
                         .labels = Tensor::from(labels, {bars.size()}),
                         .classes = bars.classes()});
  };
  TinyNet own, memory;
  run(own, "own");
  options_.run_folder = folder_ / "memory";
  fit(memory, stored(train_), stored(validation_), options_);
  expect_same_weights(folder_ / "own", folder_ / "memory");
  EXPECT_EQ(values_of(own.state_dict()), values_of(memory.state_dict()));
}

TEST_F(Fit, OwnLoss_IsUsed) {
  TinyNet plain, same, nothing;
  run(plain, "plain");
  const Values start = values_of(TinyNet().parameters());
  options_.loss_function = [](const Tensor& outputs, const Tensor& labels) {
    EXPECT_EQ(labels.dtype(), DType::i64);
    return compute_loss(LossKind::cross_entropy, outputs, labels);
  };
  run(same, "same");
  EXPECT_EQ(values_of(same.state_dict()), values_of(plain.state_dict()));
  options_.loss_function = [](const Tensor& outputs, const Tensor&) { return multiply(sum(outputs), 0.0f); };
  const TrainResult result = run(nothing, "nothing");
  EXPECT_EQ(values_of(nothing.parameters()), start);
  EXPECT_EQ(result.epochs.back().val_loss, 0);
  EXPECT_EQ(result.epochs.back().train_loss, 0);
  options_.loss_function = [](const Tensor& outputs, const Tensor&) { return outputs; };
  options_.run_folder = folder_ / "vector";
  EXPECT_EQ(error_text([&] { fit(same, train_, validation_, options_); }),
            "[fit] expected a loss_function that returns a scalar, got [10, 2]");
}

TEST_F(Fit, OwnOptimizer_IsUsed) {
  TinyNet adam, same;
  options_.momentum = 0;
  options_.optimizer = "adam";
  run(adam, "adam");
  options_.optimizer = "sgd";
  std::vector<std::string> names;
  options_.make_optimizer = [&](NamedTensors parameters) -> std::unique_ptr<Optimizer> {
    for (const NamedTensor& each : parameters) names.push_back(each.name);
    return std::make_unique<Adam>(std::move(parameters), AdamOptions{.lr = 1});  // the schedule sets the rate
  };
  run(same, "same");
  EXPECT_EQ(names, (std::vector<std::string>{"first.weight", "first.bias", "last.weight", "last.bias"}));
  EXPECT_EQ(values_of(same.state_dict()), values_of(adam.state_dict()));
  options_.make_optimizer = [](NamedTensors) { return std::unique_ptr<Optimizer>(); };
  EXPECT_EQ(run_error(), "[fit] expected make_optimizer to return an optimizer, got a null pointer");
}

TEST_F(Fit, OwnMetrics_AreLoggedAndReported) {
  options_.metrics = {{"my accuracy",
                       [](const Tensor& outputs, const Tensor& labels) {
                         const std::vector<std::int64_t> chosen =
                             argmax(outputs, 1).to_vector<std::int64_t>();
                         const std::vector<std::int64_t> truth = labels.to_vector<std::int64_t>();
                         std::size_t correct = 0;
                         for (std::size_t i = 0; i < truth.size(); ++i) correct += chosen[i] == truth[i];
                         return static_cast<double>(correct) / static_cast<double>(truth.size());
                       }},
                      {"two", [](const Tensor&, const Tensor&) { return 2.0; }}};
  TinyNet model;
  const TrainResult result = run(model, "run");
  for (const EpochRecord& record : result.epochs) {
    ASSERT_EQ(record.metrics.size(), 2u);
    EXPECT_EQ(record.metrics[0].name, "my accuracy");
    EXPECT_EQ(record.metrics[0].value, record.val_accuracy);
    EXPECT_EQ(record.metrics[1].value, 2);
  }
  const std::string log = get_bytes(folder_ / "run/log.csv");
  EXPECT_NE(log.find(",waited_seconds,my accuracy,two\n"), std::string::npos) << log;
  EXPECT_TRUE(log.ends_with(",2\n")) << log;
  EXPECT_NE(get_bytes(folder_ / "run/report.html").find("validation my accuracy"), std::string::npos);
  options_.resume = true;
  options_.metrics.pop_back();
  EXPECT_EQ(error_text([&] { run(model, "run"); }),
            "[train] " + (folder_ / "run/last.ckpt").string() + " has 2 metrics, expected 1 as in this run");
}

TEST_F(Fit, FrozenParameters_StayTheSame) {
  TinyNet model;
  model.first.freeze();
  const Values before = values_of(model.first.state_dict());
  run(model, "run");
  EXPECT_EQ(values_of(model.first.state_dict()), before);
  model.last.freeze();
  options_.run_folder = folder_ / "frozen";
  EXPECT_EQ(error_text([&] { fit(model, train_, validation_, options_); }),
            "[fit] expected a model with parameters that require gradients, got none");
}

TEST_F(Fit, MeasuredDevice_RestoresTheModel) {
  TinyNet model;
  const Values before = values_of(model.state_dict());
  model.eval();
  options_.workers.reset();  // two candidates on the CPU
  const TrainingImages images(std::make_shared<const Bars>(60), ImageSize{8, 8, 1}, false);
  const ImageInput input{.flat = false, .height = 8, .width = 8, .channels = 1};
  const DeviceChoice choice = choose_device(options_, images, input, model);
  EXPECT_NE(choice.reason.find(" would do "), std::string::npos) << choice.reason;
  EXPECT_TRUE(choice.workers);
  EXPECT_EQ(values_of(model.state_dict()), before);
  EXPECT_FALSE(model.is_training());
  for (const NamedTensor& each : model.parameters()) EXPECT_FALSE(each.tensor.grad().defined());

  TinyNet measured, fixed;
  run(measured, "measured");
  options_.workers = 1;
  run(fixed, "fixed");
  EXPECT_EQ(values_of(measured.state_dict()), values_of(fixed.state_dict()));
}

TEST_F(Fit, ModelFile_IsClassifiedWithTheModule) {
  TinyNet model;
  const TrainResult result = run(model, "run");
  const std::filesystem::path file = result.folder / "best.safetensors";
  EXPECT_NE(error_text([&] { Classifier unknown(file); }).find("'custom' is not a model this program knows"),
            std::string::npos);

  TinyNet loaded;
  Classifier classifier(file, loaded);
  EXPECT_EQ(classifier.classes(), validation_.classes());
  std::size_t correct = 0;
  for (std::int64_t i = 0; i < validation_.size(); ++i) {
    const Image image = validation_.image(i);
    const Prediction answer = classifier(image);
    ASSERT_EQ(answer.probabilities.size(), 2u);
    EXPECT_EQ(answer.class_name, validation_.classes()[answer.chosen]);
    EXPECT_EQ(answer.probability, answer.probabilities[answer.chosen]);
    EXPECT_GE(answer.probability, 0.5f);
    correct += static_cast<std::int32_t>(answer.chosen) == validation_.label(i);
  }
  EXPECT_EQ(static_cast<double>(correct) / 30, result.test_accuracy);
  // Gray as RGBA is the same image.
  const Image image = validation_.image(3);
  std::vector<std::uint8_t> rgba;
  for (const std::uint8_t pixel : image.pixels) rgba.insert(rgba.end(), {pixel, pixel, pixel, 17});
  EXPECT_NEAR(classifier(ImageView(rgba.data(), 8, 8, 4, 32)).probability, classifier(image).probability,
              1e-6);
  TinyNet wide(3);
  EXPECT_NE(error_text([&] { Classifier wrong(file, wide); }).find("not the weights of this module"),
            std::string::npos);
}

// Photographs of several sizes, one of them damaged.
TEST_F(Fit, Photographs_AreResizedAndUnreadableOnesListed) {
  struct ColorNet : Module {
    ColorNet() { add_child("last", last); }
    Tensor forward(const Tensor& x) override { return last(mean(x, {1, 2})); }
    Linear last{3, 2, {.random = {.seed = 5}}};
  };
  write_photos(folder_ / "photos", 8);
  put_bytes(folder_ / "photos/blue/photo 103.png", "no image");
  std::vector<std::filesystem::path> files;
  std::vector<std::int32_t> labels;
  for (const char* const name : {"blue", "red"})
    for (int i = 100; i < 108; ++i) {
      files.push_back(folder_ / "photos" / name / ("photo " + std::to_string(i) + ".png"));
      labels.push_back(name == std::string("red"));
    }
  const PhotoDataset photos(files, labels, {"blue", "red"});
  options_.epochs = 8;
  options_.batch_size = 4;
  options_.learning_rate = 0.1;
  options_.transform = training_transform(16);
  options_.norm = imagenet_norm;
  options_.run_folder = folder_ / "run";
  ColorNet model;
  const TrainResult result = fit(model, photos, photos, options_);
  EXPECT_EQ(result.test_accuracy, 1);
  const std::string bad = get_bytes(folder_ / "run/bad-images.csv");
  EXPECT_NE(bad.find("photo 103.png"), std::string::npos) << bad;
  ColorNet loaded;
  Classifier classifier(folder_ / "run/best.safetensors", loaded);
  EXPECT_EQ(classifier.info().transform, "resize");
  EXPECT_EQ(classifier(photos.image(15)).class_name, "red");
  EXPECT_EQ(classifier(photos.image(0)).class_name, "blue");
}

}  // namespace
}  // namespace tandem
