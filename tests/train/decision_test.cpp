// Temperature, threshold and views: fitted, stored in the model file, and applied wherever it is used.
#include "tandem/train/decision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tandem/data/photo_set.h"
#include "tandem/image/resize.h"
#include "tandem/train/classifier.h"
#include "tandem/train/evaluation_report.h"
#include "tandem/train/export/export_onnx.h"
#include "tandem/train/fit_decision.h"
#include "tandem/train/predict.h"
#include "tandem/train/temperature.h"
#include "tandem/train/views.h"
#include "tests/golden/golden.h"
#include "tests/train/photo_run.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

TEST(Temperature, EqualsStoredMinima) {
  const std::vector<golden::Case> cases = golden::load("metrics", "calibration");
  EXPECT_EQ(cases.size(), 3u);
  for (const golden::Case& one : cases) {
    const std::vector<float> logits = one.array("logits").values<float>();
    const std::vector<std::int32_t> labels = one.array("labels").values<std::int32_t>();
    const std::int64_t classes = std::ssize(logits) / std::ssize(labels);
    const double temperature = fit_temperature(logits, labels, classes);
    EXPECT_NEAR(temperature / one.array("temperature").values<double>()[0], 1, 1e-6) << one.name;
    Evaluation raw{.classes = classes, .predictions = {}, .outputs = logits};
    raw.predictions.resize(labels.size());
    const Evaluation calibrated = apply_decision(raw, labels, {.temperature = temperature});
    EXPECT_NEAR(calibrated.loss, one.array("calibrated_nll").values<double>()[0], 1e-6) << one.name;
  }
}

TEST(Temperature, WithoutAMinimum_IsABound) {
  EXPECT_EQ(fit_temperature(std::vector<float>{1, 0, 0, 1}, std::vector<std::int32_t>{0, 1}, 2),
            min_temperature);
  EXPECT_EQ(fit_temperature(std::vector<float>{1, 0, 0, 1}, std::vector<std::int32_t>{1, 0}, 2),
            max_temperature);
}

TEST(Temperature, BadInput_Throws) {
  EXPECT_EQ(error_text([] { fit_temperature({}, {}, 2); }),
            "[calibrate] expected images to fit a temperature to, got none");
  EXPECT_EQ(error_text([] {
              fit_temperature(std::vector<float>{1, NAN}, std::vector<std::int32_t>{0}, 2);
            }),
            "[calibrate] expected finite outputs, got nan");
}

TEST(Decision, Threshold_IsThatOfTheSecondOfTwoClasses) {
  const std::vector<float> row{0.7f, 0.3f}, three{0.2f, 0.5f, 0.3f};
  EXPECT_EQ(Decision{}.choose(row), 0u);
  EXPECT_EQ(Decision{.threshold = 0.25}.choose(row), 1u);
  EXPECT_EQ(Decision{.threshold = 0.5}.choose(row), 0u);
  EXPECT_EQ(Decision{.threshold = 0.25}.choose(std::vector<float>{0.75f, 0.25f}), 1u);  // from it on
  EXPECT_EQ(Decision{.threshold = 0.75}.choose(std::vector<float>{0.3f, 0.7f}), 0u);
  EXPECT_EQ(Decision{.threshold = 0.9}.choose(three), 1u);
}

TEST(ThresholdRequest, Text_IsReadAndWritten) {
  for (const char* const text : {"none", "auto", "0.25", "0", "1"})
    EXPECT_EQ(ThresholdRequest::parse(text).to_string(), text);
  for (const char* const text : {"", "Auto", "1.5", "-0.1", "nan", "0.5x"})
    EXPECT_EQ(error_text([&] { ThresholdRequest::parse(text); }),
              std::string("expected none, auto or a number from 0 to 1, got '") + text + "'");
}

// Eight images with two different logits of the second class; the first one's is 0.
TEST(FitDecision, Threshold_IsThatOfCalibratedProbabilities) {
  const std::vector<std::int32_t> labels{1, 1, 1, 0, 0, 0, 1, 0};
  Evaluation raw{.classes = 2, .predictions = std::vector<std::int32_t>(8), .outputs = {}};
  for (const float logit : {6.0f, 6.0f, 6.0f, 6.0f, 1.0f, 1.0f, 1.0f, 1.0f})
    raw.outputs.insert(raw.outputs.end(), {0.0f, logit});
  const Decision decision = fit_decision(raw, labels, true, {.automatic = true});
  EXPECT_GT(decision.temperature, 2);
  const auto share = [&](double logit) { return 1 / (1 + std::exp(-logit / decision.temperature)); };
  EXPECT_NEAR(decision.threshold.value(), (share(6) + share(1)) / 2, 1e-6);
}

TEST(FitDecision, BadInput_Throws) {
  const Evaluation three{.classes = 3, .predictions = {0}, .outputs = {1, 2, 3}};
  EXPECT_EQ(error_text([&] { fit_decision(three, std::vector<std::int32_t>{0}, false, {.value = 0.5}); }),
            "[calibrate] expected a model with two classes for a threshold, got 3");
  const Evaluation two{.classes = 2, .predictions = {0}, .outputs = {1, 2}};
  EXPECT_EQ(error_text([&] { fit_decision(two, std::vector<std::int32_t>{0}, false, {.automatic = true}); }),
            "[calibrate] expected images of both classes to choose a threshold, got 1 and 0");
  EXPECT_EQ(error_text([&] { fit_decision(two, std::vector<std::int32_t>{0}, true, {}, LossKind::mse); }),
            "[calibrate] expected a model with logits, got one with sigmoid outputs (loss mse)");
}

Model small_model(const Decision& decision = {}) {
  Model model{.info = {.architecture = {.model = "cnn", .channels = 3, .classes = 2},
                       .classes = {"blue", "red"},
                       .height = 16,
                       .width = 16,
                       .channels = 3,
                       .transform = "resize 16",
                       .data = "photos",
                       .decision = decision},
              .module = nullptr};
  model.info.transform = evaluation_transform(16).to_string();
  model.module = make_model(model.info.architecture, 3);
  model.module->eval();
  return model;
}

class StoredDecision : public PhotoRunCase {
 protected:
  StoredDecision() : PhotoRunCase(6) {}
  Model stored(const Decision& decision) {
    const Model made = small_model(decision);
    save_model(folder_ / "model.safetensors", *made.module, made.info);
    return load_model(folder_ / "model.safetensors");
  }
};

TEST_F(StoredDecision, ModelFile_KeepsIt) {
  const Decision decision{.temperature = 1.0 / 3, .threshold = 0.123456789012345};
  EXPECT_EQ(stored(decision).info.decision, decision);
  EXPECT_TRUE(stored({}).info.decision.empty());
  EXPECT_FALSE(model_metadata(small_model().info).contains("tandem.temperature"));
}

TEST_F(StoredDecision, BadMetadata_IsRefused) {
  const auto problem = [&](const char* key, const char* value) {
    const Model made = small_model();
    TensorFile file{.metadata = model_metadata(made.info), .tensors = made.module->state_dict()};
    file.metadata[key] = value;
    write_safetensors(folder_ / "bad.safetensors", file);
    return error_text([&] { load_model(folder_ / "bad.safetensors"); });
  };
  const std::string path = (folder_ / "bad.safetensors").string();
  EXPECT_EQ(problem("tandem.temperature", "0"),
            "[model] " + path + ": expected a number from 1e-06 to 1000000 as tandem.temperature, got '0'");
  EXPECT_EQ(problem("tandem.threshold", "2"),
            "[model] " + path + ": expected a number from 0 to 1 as tandem.threshold, got '2'");
}

TEST_F(StoredDecision, PredictEvalAndClassifier_ApplyIt) {
  const std::string photos = (folder_ / "photos").string();
  Model plain = stored({});
  const std::vector<Prediction> raw = predict_paths(plain, {photos});
  constexpr double temperature = 0.2;
  float highest = 0;
  for (const Prediction& one : raw) highest = std::max(highest, one.probabilities[1]);
  const double logit = std::log(static_cast<double>(highest) / (1 - static_cast<double>(highest)));
  const double threshold = 1 / (1 + std::exp(-logit / temperature));  // of the highest one alone
  Model decided = stored({.temperature = temperature, .threshold = threshold - 1e-6});
  const std::vector<Prediction> rows = predict_paths(decided, {photos});
  const EvaluationReport report = evaluate_model(decided, photos);
  Classifier classifier(folder_ / "model.safetensors");
  int reds = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto p = static_cast<double>(raw[i].probabilities[1]);
    EXPECT_NEAR(rows[i].probabilities[1], 1 / (1 + std::exp(-std::log(p / (1 - p)) / temperature)), 1e-5);
    EXPECT_EQ(rows[i].chosen, raw[i].probabilities[1] == highest ? 1u : 0u);
    EXPECT_EQ(rows[i].probability, rows[i].probabilities[rows[i].chosen]);
    const Prediction own = classifier(load_image(rows[i].path));
    EXPECT_EQ(own.chosen, rows[i].chosen);
    EXPECT_NEAR(own.probabilities[1], rows[i].probabilities[1], 1e-5);
    reds += static_cast<int>(rows[i].chosen);
  }
  EXPECT_EQ(report.metrics[1].predicted, reds);
  ASSERT_TRUE(report.page.calibration && report.page.curves);
  EXPECT_EQ(report.page.curves->threshold, threshold - 1e-6);
  EXPECT_NE(evaluation_text(report, {}).find("Threshold: 'red' from a probability of"), std::string::npos);
  const auto json = nlohmann::json::parse(evaluation_json(report));
  EXPECT_EQ(json["curves"]["positive"], "red");
  EXPECT_NEAR(json["calibration"]["temperature"].get<double>(), temperature, 1e-12);
  EXPECT_TRUE(json["calibration"]["same_images"].is_null());
}

TEST_F(StoredDecision, ExportedGraph_DividesByTheTemperature) {
  Model plain = small_model(), hot = small_model({.temperature = 0.05});
  EXPECT_LT(export_onnx(plain, folder_ / "plain.onnx").max_difference, 1e-4);
  const ExportReport report = export_onnx(hot, folder_ / "hot.onnx");
  EXPECT_LT(report.max_difference, 1e-3);
  EXPECT_EQ(report.nodes, export_onnx(plain, folder_ / "plain.onnx").nodes + 1);
  EXPECT_EQ(report.same_class, report.images);
}

TEST(Views, Definitions) {
  std::vector<std::uint8_t> pixels(2 * 16 * 16);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 37 % 251);
  const Tensor images = Tensor::from(pixels, {2, 16, 16, 1});
  EXPECT_EQ(view_of(images, 0).to_vector<std::uint8_t>(), pixels);
  const std::vector<std::uint8_t> mirror = view_of(images, 1).to_vector<std::uint8_t>();
  for (std::size_t i = 0; i < pixels.size(); ++i) EXPECT_EQ(mirror[i], pixels[i / 16 * 16 + 15 - i % 16]);
  EXPECT_EQ(view_of(view_of(images, 1), 1).to_vector<std::uint8_t>(), pixels);
  EXPECT_EQ(view_of(images.reshape({2, 16, 16}), 1).to_vector<std::uint8_t>(), mirror);
  EXPECT_EQ(view_of(images.reshape({2, 16, 16}), 1).rank(), 3);
  std::vector<std::vector<std::uint8_t>> all;
  for (int view = 0; view < max_views; ++view) {
    all.push_back(view_of(images, view).to_vector<std::uint8_t>());
    EXPECT_EQ(view_of(images, view).to_vector<std::uint8_t>(), all.back());
    for (int before = 0; before < view; ++before)
      EXPECT_NE(all.back(), all[static_cast<std::size_t>(before)]) << view;
  }
  // 14 of 16 rows and columns at the center and in the corners, each followed by its mirror image.
  constexpr std::pair<std::int64_t, std::int64_t> places[] = {{1, 1}, {0, 0}, {0, 2}, {2, 0}, {2, 2}};
  for (std::size_t place = 0; place < 5; ++place) {
    const auto [top, left] = places[place];
    Image crop = make_image(14, 14, 1);
    for (std::int64_t y = 0; y < 14; ++y)
      for (std::int64_t x = 0; x < 14; ++x)
        crop.at(y, x) = pixels[static_cast<std::size_t>(16 * (top + y) + left + x)];
    const Image expected = resize(crop, 16, 16);
    for (std::size_t i = 0; i < 256; ++i) {
      EXPECT_EQ(all[2 * place + 2][i], expected.pixels[i]) << place;
      EXPECT_EQ(all[2 * place + 3][i], expected.pixels[i / 16 * 16 + 15 - i % 16]) << place;
    }
  }
}

TEST(Views, Text_IsRead) {
  EXPECT_EQ(parse_views("none"), 1);
  EXPECT_EQ(parse_views("flip"), 2);
  EXPECT_EQ(parse_views("12"), 12);
  for (const char* const text : {"1", "13", "-2", "flips", ""})
    EXPECT_EQ(error_text([&] { parse_views(text); }),
              std::string("expected none, flip or a number from 2 to 12, got '") + text + "'");
}

TEST_F(StoredDecision, Views_AreAveraged) {
  const std::string photos = (folder_ / "photos").string();
  Model model = stored({.temperature = 0.5});
  const std::vector<Prediction> one = predict_paths(model, {photos});
  const std::vector<Prediction> two = predict_paths(model, {photos}, {.views = 2});
  const PhotoRecipe recipe = model.info.photo_recipe();
  for (std::size_t i = 0; i < one.size(); ++i) {
    const std::filesystem::path path = one[i].path;
    const Tensor pixels = load_photos(std::span(&path, 1), recipe).images;
    const std::vector<float> mirrored = mean_probabilities(*model.module, model.info, view_of(pixels, 1), 1);
    EXPECT_NEAR(two[i].probabilities[0], (one[i].probabilities[0] + mirrored[0]) / 2, 1e-6);
  }
  const EvaluationReport report = evaluate_model(model, photos, {.views = 2});
  double loss = 0;
  for (const Prediction& row : two)
    loss -=
        std::log(static_cast<double>(row.probabilities[row.path.find("/red/") == std::string::npos ? 0 : 1]));
  EXPECT_NEAR(report.loss, loss / static_cast<double>(two.size()), 1e-5);
  EXPECT_EQ(evaluation_json(report), evaluation_json(evaluate_model(model, photos, {.views = 2})));

  // A threshold is compared with the mean.
  float highest = 0;
  for (const Prediction& row : two) highest = std::max(highest, row.probabilities[1]);
  Model decided = stored({.temperature = 0.5, .threshold = static_cast<double>(highest) - 1e-6});
  EXPECT_EQ(evaluate_model(decided, photos, {.views = 2}).metrics[1].predicted, 1);
}

TEST(Views, GrayImages_AreAveraged) {
  const TempFolder folder;
  Model model{.info = {.architecture = {.model = "mlp", .layers = {64, 4, 2}},
                       .classes = {"a", "b"},
                       .height = 8,
                       .width = 8,
                       .channels = 1},
              .module = nullptr};
  model.module = make_model(model.info.architecture, 1);
  Image image = make_image(8, 8, 1), mirror = image;
  for (std::int64_t i = 0; i < 64; ++i) {
    image.at(i / 8, i % 8) = static_cast<std::uint8_t>(i * 37 % 251);
    mirror.at(i / 8, 7 - i % 8) = image.at(i / 8, i % 8);
  }
  save_png(folder / "image.png", image);
  save_png(folder / "mirror.png", mirror);
  const auto share = [&](const char* name, int views) {
    return predict_file(model, folder / name, {.views = views}).front().probabilities[0];
  };
  EXPECT_GT(std::abs(share("image.png", 1) - share("mirror.png", 1)), 1e-4f);
  EXPECT_NEAR(share("image.png", 2), (share("image.png", 1) + share("mirror.png", 1)) / 2, 1e-6);
}

class DecisionRun : public StoredDecision {
 protected:
  DecisionRun() {
    options_.calibrate = true;
    options_.threshold.automatic = true;
  }
  nlohmann::json report() const { return nlohmann::json::parse(get_bytes(folder_ / "run/report.json")); }
};

TEST_F(DecisionRun, ValidationImages_FitTheKeptModelAndThePageSaysSo) {
  const TrainResult result = train(options_);
  EXPECT_NE(result.decision.temperature, 1);
  ASSERT_TRUE(result.decision.threshold);
  EXPECT_EQ(load_model(folder_ / "run").info.decision, result.decision);
  EXPECT_EQ(report()["calibration"]["same_images"], true);
  EXPECT_EQ(report()["calibration"]["fitted_on"], "validation");
  EXPECT_EQ(report()["curves"]["auc"], 1);
  EXPECT_EQ(report()["test_accuracy"], 1);
  EXPECT_LT(report()["calibration"]["loss"], report()["calibration"]["loss_before"]);
  const std::string page = get_bytes(folder_ / "run/report.html");
  EXPECT_NE(page.find("measured on the images that the temperature was fitted to"), std::string::npos);
  EXPECT_NE(page.find("on these images: expect a little less on new ones"), std::string::npos);
  options_.resume = true;
  EXPECT_EQ(train(options_).decision, result.decision);
}

TEST_F(DecisionRun, TestImages_AreOnlyMeasured) {
  std::filesystem::rename(folder_ / "photos", folder_ / "train");
  write_photos(folder_ / "photos/test", 5, 40);
  std::filesystem::rename(folder_ / "train", folder_ / "photos/train");
  const TrainResult result = train(options_);
  EXPECT_EQ(report()["calibration"]["same_images"], false);
  EXPECT_EQ(report()["calibration"]["images"], 10);
  Model model = load_model(folder_ / "run");
  const EvaluationReport evaluated = evaluate_model(model, options_.data);
  EXPECT_NEAR(evaluated.loss, result.test_loss, 1e-6);
  EXPECT_EQ(evaluated.accuracy, result.test_accuracy);
}

// Fitted to them, the temperature would be the highest.
TEST_F(DecisionRun, TestImagesWithWrongLabels_ChangeNothing) {
  std::filesystem::rename(folder_ / "photos", folder_ / "train");
  write_photos(folder_ / "photos/test", 5, 40, "red", "blue");
  std::filesystem::rename(folder_ / "train", folder_ / "photos/train");
  const TrainResult result = train(options_);
  EXPECT_EQ(result.test_accuracy, 0);
  EXPECT_LT(result.decision.temperature, 1);
}

TEST_F(DecisionRun, CrossValidation_FitsToTheFolds) {
  options_.folds = 3;
  const TrainResult result = train(options_);
  EXPECT_EQ(report()["calibration"]["fitted_on"], "cross-validated");
  EXPECT_EQ(report()["calibration"]["images"], 12);
  EXPECT_EQ(load_model(folder_ / "run").info.decision, result.decision);
}

TEST_F(DecisionRun, BadInput_IsRefusedBeforeAnythingIsWritten) {
  std::filesystem::create_directories(folder_ / "photos/green");
  for (int i = 0; i < 4; ++i)
    save_png(folder_ / ("photos/green/" + std::to_string(i) + ".png"),
             tinted(true, 50 + static_cast<unsigned>(i)));
  EXPECT_EQ(error_text([&] { train(options_); }), "[train] expected two classes for a threshold, got 3");
  TrainOptions squared;
  squared.loss = LossKind::mse;
  squared.calibrate = true;
  EXPECT_EQ(error_text([&] { check_options(squared); }),
            "[train] calibrate requires a loss of logits, got mse");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

}  // namespace
}  // namespace tandem
