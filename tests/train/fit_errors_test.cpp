// fit(): what it refuses, and when.
#include "tests/train/fit_case.h"

namespace tandem {
namespace {

using FitErrors = FitCase;

TEST_F(FitErrors, BadData_IsAnErrorBeforeTheRunFolderExists) {
  EXPECT_EQ(run_error(Bars(0), validation_), "[fit] expected images in the training set, got none");
  EXPECT_EQ(run_error(train_, Bars(0)), "[fit] expected images in the validation set, got none");
  Bars other(30);
  other.class_names = {"horizontal", "vertical", "diagonal"};
  EXPECT_EQ(run_error(train_, other),
            "[fit] expected the same classes for training and validation, got 2 (horizontal, vertical) and 3 "
            "(horizontal, vertical, diagonal)");
  Bars unlabeled(30);
  unlabeled.bad_label_of = 4;
  EXPECT_EQ(run_error(unlabeled, validation_),
            "[fit] expected labels from 0 to 1 in the training set, got 2 for sample 4");
  Bars misnamed(30);
  misnamed.class_names = {"horizontal", "vertic\xFF"};
  EXPECT_EQ(run_error(misnamed, misnamed), "[fit] expected names of classes in UTF-8, got 'vertic\uFFFD'");
  Bars larger(30);
  larger.side = 9;
  EXPECT_EQ(run_error(train_, larger),
            "[fit] expected images of one size for training and validation, got 8x8 gray and 9x9 gray");
  Bars throwing(30);
  throwing.throws_at = 3;
  const std::string text = run_error(train_, throwing);
  EXPECT_NE(text.find("sample 3: no such bar"), std::string::npos) << text;
}

TEST_F(FitErrors, OptionsOfTheStepThatDoNotFit_AreErrorsBeforeTheRunFolderExists) {
  const auto error = [&](const auto& change) {
    const FitOptions before = options_;
    change(options_);
    std::string text = run_error();
    options_ = before;
    return text;
  };
  EXPECT_EQ(error([](FitOptions& o) { o.class_weights = ClassWeights::parse("vertica=2"); }),
            "[train] class_weights: the data has no class 'vertica'; did you mean 'vertical'?");
  EXPECT_EQ(error([](FitOptions& o) { o.class_weights = ClassWeights::parse("vertical=0,horizontal=0"); }),
            "[train] class_weights: expected a weight above 0 for a class that has training images");
  EXPECT_EQ(error([](FitOptions& o) {
              o.class_weights.balanced = true;
              o.loss_function = [](const Tensor& outputs, const Tensor&) { return outputs; };
            }),
            "[fit] class_weights require loss cross-entropy or focal, got a loss_function");
  EXPECT_EQ(error([](FitOptions& o) { o.clip_norm = -1; }),
            "[fit] clip_norm: expected a number of 0 or more, got '-1.0'");
  EXPECT_EQ(error([](FitOptions& o) { o.ema = 1; }),
            "[fit] ema: expected a number of 0 or more and below 1, got '1.0'");
  EXPECT_EQ(error([](FitOptions& o) { o.stage_lr_decay = 0.5; }),
            "[train] stage_lr_decay requires a model with stages, a BackboneModel");
  EXPECT_EQ(error([](FitOptions& o) {
              o.stage_lr_decay = 0.5;
              o.optimizer = "rmsprop";
            }),
            "[train] stage_lr_decay requires optimizer sgd, adam or adamw, got rmsprop");
  EXPECT_EQ(error([](FitOptions& o) { o.unfreeze_at = 2; }),
            "[train] unfreeze_at requires frozen parameters, got none");
  EXPECT_EQ(error([](FitOptions& o) { o.accumulate = o.shards = 11; }),
            "[fit] expected at most 10 shards, one per image of a batch, got 11");
  EXPECT_EQ(error([](FitOptions& o) { o.accumulate = 3; }),
            "[train] expected at least 3 shards for 3 passes on each of 1 ranks, got 1");
}

TEST_F(FitErrors, DatasetThatThrowsInTraining_IsOneError) {
  Bars throwing(60);
  throwing.throws_at = 37;
  for (const int workers : {0, 2}) {
    options_.workers = workers;
    options_.run_folder = folder_ / ("run" + std::to_string(workers));
    TinyNet model;
    EXPECT_EQ(error_text([&] { fit(model, throwing, validation_, options_); }),
              "[loader] sample 37: no such bar");
  }
}

TEST_F(FitErrors, BadModel_IsAnErrorBeforeTheRunFolderExists) {
  NoWeights none;
  options_.run_folder = folder_ / "error";
  EXPECT_EQ(error_text([&] { fit(none, train_, validation_, options_); }),
            "[fit] expected a model with parameters, got none");
  TinyNet wide(3);
  EXPECT_EQ(error_text([&] { fit(wide, train_, validation_, options_); }),
            "[fit] expected a model with outputs of shape [n, 2] for 2 classes, got [1, 3] for 1 image");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "error"));
}

TEST_F(FitErrors, BadOptions_AreErrorsBeforeTheRunFolderExists) {
  const FitOptions good = options_;
  options_.epochs = 0;
  EXPECT_EQ(run_error(), "[fit] epochs: expected a whole number from 1 to 16777216, got '0'");
  options_ = good;
  options_.learning_rate = -1;
  EXPECT_EQ(run_error(), "[fit] lr: expected a number above 0, got '-1.0'");
  options_ = good;
  options_.workers = -1;
  EXPECT_EQ(run_error(), "[fit] workers: expected auto or a whole number from 0 to 1024, got '-1'");
  options_ = good;
  options_.metrics = {{"a", [](const Tensor&, const Tensor&) { return 0.0; }}, {"b", {}}};
  EXPECT_EQ(run_error(), "[fit] expected metrics with a name and a function, got 'b'");
  options_ = good;
  options_.model_name = "mlp";
  EXPECT_EQ(run_error(), "[fit] expected a model_name of a model of images, got mlp");
  options_ = good;
  options_.resume = true;
  TinyNet model;
  EXPECT_EQ(error_text([&] { fit(model, train_, validation_, options_); }),
            "[fit] expected the run_folder of the run to resume");
}

TEST_F(FitErrors, RunFolderInUse_IsRefused) {
  TinyNet model;
  run(model, "run");
  EXPECT_EQ(error_text([&] { run(model, "run"); }),
            "[train] " + (folder_ / "run").string() +
                " is not empty: expected a new or empty run folder, or resume = true");
  options_.resume = true;
  options_.learning_rate = 0.5;
  EXPECT_EQ(error_text([&] { run(model, "run"); }),
            "[train] " + (folder_ / "run/last.ckpt").string() +
                " belongs to another configuration: lr (0.5, was 0.02)");
}

}  // namespace
}  // namespace tandem
