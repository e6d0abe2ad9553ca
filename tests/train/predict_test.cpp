// Predictions for photographs: results, errors and the contact sheet.
#include "tandem/train/predict.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tandem/data/photo_set.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/evaluation_report.h"
#include "tandem/train/prediction_sheet.h"
#include "tests/train/photo_folder.h"

namespace tandem {
namespace {

// With random weights.
Model photo_model() {
  Model model{.info = {.architecture = {.model = "cnn", .channels = 3, .classes = 2},
                       .classes = {"blue", "red"},
                       .height = 16,
                       .width = 16,
                       .channels = 3,
                       .norm = imagenet_norm,
                       .transform = "center 18"},
              .module = nullptr};
  model.module = make_model(model.info.architecture, 3);
  return model;
}

TEST(PredictPhotos, Paths_GivePredictionsAndErrors) {
  const TempFolder folder;
  write_photos(folder / "photos", 2);
  put_bytes(folder / "photos/red/a\n\"b\".jpg", "no image");
  put_bytes(folder / "photos/blue/Thumbs.db", "x");
  Model model = photo_model();
  const std::vector<Prediction> rows =
      predict_paths(model, {(folder / "photos").string(), (folder / "none.png").string()});
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_EQ(error_count(rows), 3u);
  EXPECT_EQ(count_skipped(unread_files(rows)), "3 files: 1 damaged, 1 cannot be opened, 1 unknown type");
  EXPECT_EQ(rows[0].path, (folder / "photos/blue/photo 100.png").string());
  EXPECT_EQ(rows[2].path, (folder / "photos/red/a\n\"b\".jpg").string());
  EXPECT_FALSE(rows[2].error.empty());
  EXPECT_EQ(rows[5].error, "no such file");
  EXPECT_EQ(rows[6].path, (folder / "photos/blue/Thumbs.db").string());
  EXPECT_EQ(rows[6].error, "unknown type .db");

  // The same as a single image with the model's transform.
  const std::filesystem::path file = rows[4].path;
  const DecodedImages made = load_photos({&file, 1}, evaluation_photo_recipe(16, PhotoFit::center));
  const std::vector<float> expected =
      probabilities(compute_outputs(*model.module, made.images, model.info.input()).to_vector<float>(), 2,
                    LossKind::cross_entropy);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(rows[4].probabilities[i], expected[i], 1e-5);
  EXPECT_EQ(rows[4].chosen, expected[1] > expected[0] ? 1u : 0u);

  const auto json = nlohmann::json::parse(predictions_json(rows, model.info.classes));
  ASSERT_EQ(json.size(), 7u);
  EXPECT_EQ(json[5]["error"], "no such file");
  EXPECT_FALSE(json[5].contains("class"));
  EXPECT_EQ(json[0]["probabilities"].size(), 2u);
  EXPECT_NEAR(json[0]["probability"].get<float>(), rows[0].probabilities[rows[0].chosen], 1e-6);

  const Image sheet = prediction_sheet(rows, model.info.classes);
  EXPECT_GT(sheet.width, 3 * 224);
  EXPECT_GT(sheet.height, 224);
}

TEST(Predict, MaxPixels_HoldsForPerceptronsToo) {
  const TempFolder folder;
  save_png(folder / "a.png", tinted(true, 1, 24, 20));
  Model model{.info = {.architecture = {.layers = {6, 4, 2}},
                       .classes = {"a", "b"},
                       .height = 2,
                       .width = 3,
                       .channels = 1},
              .module = nullptr};
  model.module = make_model(model.info.architecture, 3);
  const std::vector<std::string> paths{(folder / "a.png").string()};
  EXPECT_EQ(error_count(predict_paths(model, paths, {.decode = {.max_pixels = 480}})), 0u);
  EXPECT_EQ(error_count(predict_paths(model, paths, {.decode = {.max_pixels = 479}})), 1u);
}

TEST(PredictPhotos, Evaluation_FindsClassesByName) {
  const TempFolder folder;
  write_photos(folder / "photos/val", 2);
  put_bytes(folder / "photos/val/red/z.png", "no image");
  std::filesystem::remove_all(folder / "photos/val/blue");
  Model model = photo_model();
  const EvaluationReport report = evaluate_model(model, (folder / "photos").string());
  EXPECT_EQ(report.images, 2);
  ASSERT_EQ(report.skipped.size(), 1u);
  EXPECT_EQ(report.skipped[0].kind, SkipKind::damaged);
  EXPECT_EQ(report.metrics[0].images, 0);
  EXPECT_EQ(report.metrics[1].images, 2);
  std::filesystem::rename(folder / "photos/val/red", folder / "photos/val/green");
  EXPECT_EQ(error_text([&] { evaluate_model(model, (folder / "photos").string()); }),
            "[photos] " + (folder / "photos/val").string() +
                ": class 'green' is not one of the 2 known classes: blue, red");
  EXPECT_EQ(error_text([&] { evaluate_model(model, "nowhere"); }),
            "[eval] expected plates or a folder of photographs, got 'nowhere'");
}

TEST(PredictPhotos, ModelFile_ContainsTransform) {
  const TempFolder folder;
  const Model model = photo_model();
  save_model(folder / "m.safetensors", *model.module, model.info);
  const Model loaded = load_model(folder / "m.safetensors");
  EXPECT_EQ(loaded.info.transform, "center 18");
  EXPECT_EQ(loaded.info.photo_recipe(), evaluation_photo_recipe(16, PhotoFit::center));
  EXPECT_EQ(loaded.info.norm, imagenet_norm);
  ModelInfo bad = model.info;
  bad.transform = "twist 3";
  save_model(folder / "m.safetensors", *model.module, bad);
  EXPECT_NE(
      error_text([&] { load_model(folder / "m.safetensors"); }).find("expected a recipe as tandem.transform"),
      std::string::npos);
}

}  // namespace
}  // namespace tandem
