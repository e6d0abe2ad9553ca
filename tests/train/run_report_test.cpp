#include "tandem/train/run_report.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tandem/data/synthetic/digits.h"
#include "tandem/image/encode_png.h"
#include "tandem/report/training_page.h"
#include "tests/train/photo_folder.h"
#include "tests/train/small_run.h"

namespace tandem {
namespace {

// Every second image is predicted as the class after its own; confidence increases with the index.
Evaluation half_wrong(const ImageSet& test) {
  Evaluation tested{.classes = std::ssize(test.classes)};
  const std::vector<std::int32_t> labels = test.labels.to_vector<std::int32_t>();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto predicted = static_cast<std::int32_t>((labels[i] + static_cast<int>(i % 2)) % tested.classes);
    tested.predictions.push_back(predicted);
    for (std::int32_t c = 0; c < tested.classes; ++c)
      tested.outputs.push_back(c == predicted ? 1 + 0.01f * static_cast<float>(i) : 0);
  }
  return tested;
}

std::string png_of(const ImageSet& set, std::int64_t index) {
  Image image = make_image(set.images.size(1), set.images.size(2), static_cast<int>(set.images.size(3)));
  image.pixels = set.images.slice(0, index, index + 1).to_vector<std::uint8_t>();
  const std::vector<std::uint8_t> bytes = encode_png(image);
  return {bytes.begin(), bytes.end()};
}

TrainingReport report_of(const TrainOptions& options, const TrainingData& data) {
  const Evaluation tested = half_wrong(data.test);
  return run_report({.options = options,
                     .data = data,
                     .architecture = {},
                     .facts = {},
                     .result = {},
                     .tested = &tested,
                     .engine = "",
                     .augmentation = "",
                     .parameters = {}});
}

// Expects every second image, from `last` downwards.
void expect_pictures(const std::vector<ClassifiedImage>& images, const ImageSet& test, std::size_t count,
                     std::int64_t last, bool correct) {
  ASSERT_EQ(images.size(), count);
  EXPECT_GT(images.front().probability, images.back().probability);
  for (std::size_t k = 0; k < count; ++k) {
    EXPECT_EQ(images[k].png, png_of(test, last - 2 * static_cast<std::int64_t>(k))) << k;
    EXPECT_EQ(images[k].truth == images[k].predicted, correct) << k;
  }
}

TEST(RunReport, Page_SaysHowItWasMade) {
  const TrainingData data{.test = make_digits(20, 1)};
  TrainOptions options;
  options.command = "tandem train digits --seed 7";
  options.seed = 7;
  const std::string page = training_page(report_of(options, data));
  for (const char* part :
       {"How this page was made", "<dt>seed</dt><dd>7</dd>", "<dt>commit</dt>", "<dt>host</dt>"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST(RunReport, Throughput_IsTheMedianOfTheEpochs) {
  const TrainOptions options;
  TrainingData data;
  data.train = data.test = data.validation = make_digits(20, 3);
  TrainResult result;
  for (const double rate : {9000.0, 100.0, 300.0, 200.0})
    result.epochs.push_back({.samples_per_second = rate});
  const std::vector<Fact> facts = run_report({.options = options,
                                              .data = data,
                                              .architecture = {},
                                              .facts = {},
                                              .result = result,
                                              .tested = nullptr,
                                              .engine = "",
                                              .augmentation = "",
                                              .parameters = {}})
                                      .facts;
  const auto found = std::ranges::find(facts, "samples/s", &Fact::name);
  ASSERT_NE(found, facts.end());
  EXPECT_EQ(found->value, "250 (median of the epochs)");
}

TEST(RunReport, Mistakes_MostConfidentFirst) {
  const TrainOptions options;
  TrainingData data;
  data.train = data.test = make_digits(101, 3);
  const TrainingReport report = report_of(options, data);
  expect_pictures(report.mistakes, data.test, 32, 99, false);
  EXPECT_EQ(report.mistakes[0].name, "image 99");
  EXPECT_TRUE(report.most_confident.empty());
}

TEST(RunReport, Photographs_ShowsMistakesAndCorrectOnes) {
  const TempFolder folder;
  write_photos(folder / "photos/train", 2);
  write_photos(folder / "photos/val", 14, 10);
  TrainOptions options = default_options("cnn", {.photographs = true});
  options.data = (folder / "photos").string();
  options.image_size = 16;
  const TrainingData data = load_training_data(options, {});
  ASSERT_EQ(data.test.count(), 28);
  const TrainingReport report = report_of(options, data);
  expect_pictures(report.mistakes, data.test, 12, 27, false);
  expect_pictures(report.most_confident, data.test, 12, 26, true);
}

}  // namespace
}  // namespace tandem
