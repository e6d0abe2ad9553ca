// Cross-validation: of a last layer on shared features, of whole runs, resumed, and bad input.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <numeric>
#include <sstream>

#include "tandem/data/folds.h"
#include "tandem/report/training_json.h"
#include "tandem/train/cross_validation.h"
#include "tandem/train/logistic_regression.h"
#include "tests/train/fit_case.h"
#include "tests/train/photo_run.h"
#include "tests/train/trainer_case.h"

namespace tandem {
namespace {

// Features without any relation to the labels.
HeadFeatures random_features(std::int64_t count, std::int64_t width) {
  HeadFeatures features{.computed = {}, .rows = {.count = count, .width = width}, .labels = {}, .classes = 2};
  std::uint32_t state = 7;
  const auto next = [&] { return static_cast<float>((state = state * 1664525u + 1013904223u) >> 8); };
  for (std::int64_t i = 0; i < count * width; ++i) features.rows.values.push_back(next() * 0x1p-24f - 0.5f);
  for (std::int64_t i = 0; i < count; ++i) features.labels.push_back(static_cast<std::int32_t>(i % 2));
  return features;
}

TEST(CrossValidateHead, EveryImage_IsPredictedByALayerFittedToTheOtherFolds) {
  const HeadFeatures features = random_features(30, 5);
  const std::vector<std::int32_t> fold_of = stratified_folds(features.labels, {"a", "b"}, 3, 1);
  int called = 0;
  const CrossValidation result = cross_validate_head(
      features, fold_of, {}, [&](const FoldRecord& record) { EXPECT_EQ(record.fold, ++called); });
  EXPECT_EQ(called, 3);
  ASSERT_EQ(result.evaluation.predictions.size(), 30u);
  double loss = 0;
  std::int64_t correct = 0;
  for (int fold = 0; fold < 3; ++fold) {
    std::vector<std::int64_t> training, own;
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < 30; ++i)
      (fold_of[static_cast<std::size_t>(i)] == fold ? own : training).push_back(i);
    for (const std::int64_t i : training) labels.push_back(features.labels[static_cast<std::size_t>(i)]);
    const Standardization standardize(features.rows, training);
    const LogisticModel model = fit_logistic(standardize(features.rows, training), labels, 2);
    const std::vector<double> expected = model.probabilities(standardize(features.rows, own));
    for (std::size_t k = 0; k < own.size(); ++k) {
      const auto at = static_cast<std::size_t>(own[k]);
      const double difference = result.evaluation.outputs[2 * at + 1] - result.evaluation.outputs[2 * at];
      EXPECT_NEAR(1 / (1 + std::exp(-difference)), expected[2 * k + 1], 1e-6);
      EXPECT_EQ(result.evaluation.predictions[at], expected[2 * k + 1] > 0.5 ? 1 : 0);
      loss -= std::log(expected[2 * k + static_cast<std::size_t>(features.labels[at])]) / 30;
      correct += result.evaluation.predictions[at] == features.labels[at] ? 1 : 0;
    }
  }
  EXPECT_NEAR(result.evaluation.loss, loss, 1e-9);
  EXPECT_NEAR(result.evaluation.accuracy, static_cast<double>(correct) / 30, 1e-12);
}

// A layer that had seen the images would know all of them: there are more features than images.
TEST(CrossValidateHead, RandomLabels_AreNotLearned) {
  const HeadFeatures features = random_features(200, 256);
  const CrossValidation result =
      cross_validate_head(features, stratified_folds(features.labels, {"a", "b"}, 10, 1));
  EXPECT_NEAR(result.evaluation.accuracy, 0.5, 0.12);
}

// The layers are fitted to the first features and classify both.
TEST(CrossValidateHead, FeaturesInFp32_AreClassifiedByTheSameLayers) {
  const HeadFeatures features = random_features(40, 6);
  const std::vector<std::int32_t> fold_of = stratified_folds(features.labels, {"a", "b"}, 4, 1);
  const CrossValidation same = cross_validate_head(features, fold_of, {}, {}, features);
  EXPECT_EQ(same.fp32_evaluation->outputs, same.evaluation.outputs);
  EXPECT_EQ(same.fp32_evaluation->accuracy, same.evaluation.accuracy);
  HeadFeatures mirrored = features;  // row i has the features of row 39 − i
  for (std::int64_t i = 0; i < 40; ++i) std::copy_n(features.rows.row(39 - i), 6, mirrored.rows.row(i));
  const CrossValidation result = cross_validate_head(features, fold_of, {}, {}, mirrored);
  EXPECT_EQ(result.evaluation.outputs, same.evaluation.outputs);
  EXPECT_NE(result.fp32_evaluation->outputs, same.evaluation.outputs);
  for (std::size_t i = 0; i < 40; ++i)
    if (fold_of[i] == fold_of[39 - i]) {
      EXPECT_EQ(result.fp32_evaluation->outputs[2 * i], same.evaluation.outputs[2 * (39 - i)]) << i;
    }
}

TEST(FoldSummary, MeanAndDeviation_AreThoseOfASample) {
  const std::vector<FoldRecord> folds{
      {.images = 10, .correct = 7}, {.images = 10, .correct = 9}, {.images = 5, .correct = 5}};
  const FoldSummary summary = summarize(folds);
  EXPECT_NEAR(summary.mean, 2.6 / 3, 1e-12);
  EXPECT_NEAR(summary.deviation, 0.152752523165195, 1e-12);
  EXPECT_EQ(format_summary(summary), "86.67 ± 15.28 %");
}

// The rows of predictions.csv by path: fold, truth, class.
std::map<std::string, std::vector<std::string>> read_predictions(const std::filesystem::path& folder) {
  std::istringstream file(get_bytes(folder / "predictions.csv"));
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "path,fold,truth,class,probability");
  std::map<std::string, std::vector<std::string>> rows;
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::istringstream words(line);
    for (std::string word; std::getline(words, word, ',');) cells.push_back(word);
    EXPECT_EQ(cells.size(), 5u);
    EXPECT_TRUE(rows.emplace(cells[0], std::vector(cells.begin() + 1, cells.end())).second) << cells[0];
  }
  return rows;
}

class PhotoFolds : public PhotoRunCase {
 protected:
  PhotoFolds() { options_.folds = 3; }
  std::string run_error() {
    return error_text([&] { train(options_); });
  }
};

TEST_F(PhotoFolds, FittedLastLayer_PredictsEveryPhotographOnceAndKeepsAModelOfAll) {
  put_bytes(folder_ / "photos/red/photo 101.png", "no image");
  const TrainResult result = train(options_);
  ASSERT_EQ(result.folds.size(), 3u);
  EXPECT_EQ(result.test_count, 17);
  EXPECT_EQ(result.test_accuracy, 1);
  ASSERT_EQ(result.epochs.size(), 1u);
  EXPECT_EQ(result.epochs[0].val_accuracy, 1);
  const auto rows = read_predictions(options_.run_folder);
  EXPECT_EQ(rows.size(), 17u);
  for (const auto& [path, cells] : rows) EXPECT_NE(path.find("/" + cells[1] + "/"), std::string::npos);
  const TrainingReport report = parse_training_report(get_bytes(folder_ / "run/report.json"), "report.json");
  EXPECT_EQ(report.folds.size(), 3u);
  EXPECT_EQ(report.folds[0].training_images + report.folds[0].images, 17);
  EXPECT_EQ(std::reduce(report.confusion.begin(), report.confusion.end()), 17);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/fold-1"));
  EXPECT_NE(get_bytes(folder_ / "run/bad-images.csv").find("photo 101.png"), std::string::npos);
  EXPECT_NE(get_bytes(folder_ / "run/report.html").find("trained on all 17 images"), std::string::npos);

  // The kept layer is the one that is fitted to all photographs.
  const Model model = load_model(options_.run_folder);
  EXPECT_EQ(model.info.accuracy, 1);
  TrainOptions plain = options_;
  plain.folds = 0;
  std::filesystem::create_directories(folder_ / "divided/val");
  std::filesystem::copy(folder_ / "photos", folder_ / "divided/train",
                        std::filesystem::copy_options::recursive);
  std::filesystem::copy(folder_ / "photos", folder_ / "divided/val",
                        std::filesystem::copy_options::recursive);
  plain.data = (folder_ / "divided").string();
  plain.run_folder = folder_ / "plain";
  train(plain);
  EXPECT_EQ(weights_of(read_safetensors(folder_ / "run/best.safetensors")),
            weights_of(read_safetensors(folder_ / "plain/best.safetensors")));

  // Nothing is left to do, and nothing is lost.
  options_.resume = true;
  const TrainResult again = train(options_);
  EXPECT_EQ(again.folds.size(), 3u);
  EXPECT_EQ(read_predictions(options_.run_folder), rows);
}

// The folds have no runs that could go on, and the kept layer has seen all photographs.
TEST_F(PhotoFolds, FittedLastLayer_IsNotResumedWithSteps) {
  options_.schedule = ScheduleKind::constant;
  train(options_);
  const std::string config = get_bytes(folder_ / "run/config.toml");
  const auto saved = std::filesystem::last_write_time(folder_ / "run/last.ckpt");
  options_.resume = true;
  options_.epochs = 2;
  EXPECT_EQ(run_error(),
            "[train] " + options_.run_folder.string() +
                ": its folds fitted the last layer only: expected one epoch to resume it, got 2");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/fold-1"));
  EXPECT_EQ(get_bytes(folder_ / "run/config.toml"), config);
  EXPECT_EQ(std::filesystem::last_write_time(folder_ / "run/last.ckpt"), saved);
  options_.epochs = 1;
  EXPECT_EQ(train(options_).folds.size(), 3u);
}

TEST_F(PhotoFolds, RunsOfFolds_AreCountedBeforeTheyStart) {
  const auto first_message = [&](const std::string& folder) {
    std::string first;
    options_.run_folder = folder_ / folder;
    train(options_, {.on_message = [&](const std::string& line) {
            if (line.starts_with("Cross-validation: ")) first = line;
          }});
    return first;
  };
  EXPECT_EQ(first_message("fitted"), "");
  options_.fit_head = false;
  EXPECT_EQ(first_message("steps"), "Cross-validation: 3 runs of 1 epoch, then one on all images");
  options_.freeze = true;
  options_.epochs = 2;
  EXPECT_EQ(
      first_message("frozen"),
      "Cross-validation: 3 runs of 2 epochs, then one on all images; fit_head and one epoch would compute "
      "the features of the frozen layers once");
}

TEST_F(PhotoFolds, GradientSteps_TrainEveryFoldInAFolderOfItsOwn) {
  options_.fit_head = false;
  options_.epochs = 2;
  std::vector<int> folds;
  const TrainResult result =
      train(options_, {.on_fold = [&](const FoldRecord& record) { folds.push_back(record.fold); }});
  EXPECT_EQ(folds, (std::vector{1, 2, 3}));
  EXPECT_EQ(read_predictions(options_.run_folder).size(), 18u);
  double accuracy = 0;
  for (const int fold : folds) {
    const auto own = folder_ / ("run/fold-" + std::to_string(fold));
    const TrainingReport report = parse_training_report(get_bytes(own / "report.json"), "report.json");
    accuracy += report.epochs[0].val_accuracy / 3;
    EXPECT_EQ(report.best_epoch, 2);
    EXPECT_EQ(report.chosen_on, "");
  }
  EXPECT_NEAR(result.epochs[0].val_accuracy, accuracy, 1e-12);
  EXPECT_EQ(result.best_epoch, 2);
}

TEST_F(PhotoFolds, BadInput_IsRefusedBeforeAnythingIsWritten) {
  options_.folds = 1;
  EXPECT_EQ(run_error(), "[train] expected two folds or more, or 0 for no cross-validation, got 1");
  options_.folds = 10;
  EXPECT_EQ(run_error(), "[folds] expected at most 9 folds, the images of class 'blue', got 10");
  options_.folds = 3;
  options_.validation = 5;
  EXPECT_EQ(run_error(),
            "[train] expected no validation count with folds, which hold out every image in turn, got 5");
  options_.validation.reset();
  options_.early_stopping = 2;
  EXPECT_EQ(run_error(),
            "[train] early_stopping requires images held out for validation, got 3 folds: their images are "
            "measured and choose nothing");
  options_.early_stopping = 0;
  write_photos(folder_ / "divided/train", 4);
  write_photos(folder_ / "divided/val", 4);
  options_.data = (folder_ / "divided").string();
  EXPECT_EQ(
      run_error(),
      "[train] expected a folder without photographs for validation for folds, which hold out every one in "
      "turn, got " +
          options_.data);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

class Folds : public TrainerCase {
 protected:
  Folds() {
    options_ = small_options();
    options_.folds = 3;
    options_.epochs = 2;
  }
};

TEST_F(Folds, KeptModel_IsThatOfARunOnAllImages) {
  const TrainResult result = run("folds");
  EXPECT_EQ(result.folds.size(), 3u);
  EXPECT_EQ(result.test_count, 300);
  options_.folds = 0;
  options_.validation = 0;
  run("plain");
  EXPECT_EQ(weights_of(read_safetensors(folder_ / "folds/best.safetensors")),
            weights_of(read_safetensors(folder_ / "plain/best.safetensors")));
}

TEST_F(Folds, StoppedRun_ResumesWithTheSameBits) {
  const TrainResult whole = run("whole");
  for (const int stop_at : {5, 60, 150}) {  // within the first fold, a later one, and perhaps the last run
    const std::string name = "stopped " + std::to_string(stop_at);
    int polls = stop_at;
    const TrainResult stopped =
        run(name, false, {.stop_signal = [&] { return --polls <= 0 ? SIGTERM : 0; }}, 0);
    if (stopped.stopped_by != 0) {
      EXPECT_EQ(stopped.folder, folder_ / name);
    }
    const TrainResult resumed = run(name, true);
    EXPECT_EQ(resumed.test_accuracy, whole.test_accuracy);
    EXPECT_EQ(resumed.test_loss, whole.test_loss);
    expect_same_weights(folder_ / name, folder_ / "whole");
    EXPECT_EQ(get_bytes(folder_ / name / "predictions.csv"), get_bytes(folder_ / "whole/predictions.csv"));
  }
}

TEST(CrossValidate, OwnModule_EndsTrainedOnAllImages) {
  const TempFolder folder;
  const Bars bars(40);
  const FitOptions options{.epochs = 3, .batch_size = 8, .device = cpu_device, .run_folder = folder / "run"};
  TinyNet net;
  int folds = 0;
  const TrainResult result = cross_validate(net, bars, 4, options, {.on_fold = [&](const FoldRecord& record) {
                                              EXPECT_EQ(record.images, 10);
                                              EXPECT_EQ(record.training_images, 30);
                                              ++folds;
                                            }});
  EXPECT_EQ(folds, 4);
  EXPECT_EQ(result.test_count, 40);
  EXPECT_EQ(result.best_epoch, 3);
  TinyNet alone;
  FitOptions plain = options;
  plain.run_folder = folder / "plain";
  fit(alone, bars, bars, plain);
  EXPECT_EQ(weights_of(read_checkpoint(folder / "run/last.ckpt")),
            weights_of(read_checkpoint(folder / "plain/last.ckpt")));
  for (const auto& [name, values] : weights_of(read_safetensors(folder / "run/best.safetensors")))
    for (const NamedTensor& own : net.state_dict())
      if (own.name == name) {
        EXPECT_EQ(own.tensor.to_vector<float>(), values) << name;
      }
}

TEST(CrossValidate, LayersThatAreUnfrozen_AreFrozenAgainInEveryFold) {
  const TempFolder folder;
  const Bars bars(40);
  FitOptions options{.epochs = 2, .batch_size = 8, .device = cpu_device, .run_folder = folder / "run"};
  options.unfreeze_at = 2;
  options.ema = 0.5;
  TinyNet net, alone;
  net.first.freeze();
  alone.first.freeze();
  EXPECT_EQ(cross_validate(net, bars, 3, options).folds.size(), 3u);
  options.run_folder = folder / "plain";
  fit(alone, bars, bars, options);
  EXPECT_EQ(weights_of(read_checkpoint(folder / "run/last.ckpt")),
            weights_of(read_checkpoint(folder / "plain/last.ckpt")));
}

TEST(CrossValidate, BadInput_Throws) {
  TinyNet net;
  const Bars bars(10);
  EXPECT_EQ(error_text([&] { cross_validate(net, bars, 1); }), "[folds] expected two folds or more, got 1");
  EXPECT_EQ(error_text([&] { cross_validate(net, bars, 6); }),
            "[folds] expected at most 5 folds, the images of class 'horizontal', got 6");
  EXPECT_EQ(error_text([&] { cross_validate(net, bars, 2, {.early_stopping = 3}); }),
            "[cross_validate] expected early_stopping = 0, because folds choose nothing, got 3");
}

TEST_F(Folds, OtherNumberOfFolds_IsRefusedOnResume) {
  run("run");
  options_.folds = 4;
  EXPECT_NE(run_error("run", true).find("the data changed since the run was saved"), std::string::npos);
  EXPECT_EQ(read_config(folder_ / "run/config.toml").folds, 3);  // not that of the run that was refused
  options_.folds = 3;
  options_.epochs = 3;  // the schedule is constant
  EXPECT_EQ(run("run", true).epochs.size(), 3u);
  EXPECT_EQ(read_config(folder_ / "run/config.toml").epochs, 3);
}

}  // namespace
}  // namespace tandem
