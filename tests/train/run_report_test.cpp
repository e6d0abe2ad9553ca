#include "tandem/train/run_report.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tandem/data/synthetic/digits.h"
#include "tandem/image/encode_png.h"
#include "tandem/report/confusion.h"
#include "tandem/report/training_page.h"
#include "tandem/train/run_report_images.h"
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
    EXPECT_EQ(images[k].file, png_of(test, last - 2 * static_cast<std::int64_t>(k))) << k;
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

// The fact about ranks, or an empty text.
std::string ranks_fact(const std::vector<Place>& ranks, const std::vector<double>& exchange_seconds) {
  TrainOptions options;
  options.shards = 8;
  TrainingData data;
  data.train = data.test = data.validation = make_digits(20, 3);
  TrainResult result;
  for (const double seconds : exchange_seconds)
    result.epochs.push_back({.seconds = 2, .exchange_seconds = seconds});
  const std::vector<Fact> facts = run_report({.options = options,
                                              .data = data,
                                              .architecture = {},
                                              .facts = {},
                                              .result = result,
                                              .tested = nullptr,
                                              .engine = "",
                                              .augmentation = "",
                                              .parameters = {},
                                              .ranks = ranks})
                                      .facts;
  const auto found = std::ranges::find(facts, "ranks", &Fact::name);
  return found == facts.end() ? "" : found->value;
}

TEST(RunReport, Ranks_SayHostsShardsAndMeasuredShare) {
  const Place a{.host = "n1"}, b{.host = "n2"};
  EXPECT_EQ(ranks_fact({a}, {0}), "");
  EXPECT_EQ(ranks_fact({a, a}, {0.5, 0.25}),
            "2 on n1, 8 shards; 18.8 % of the training time in the exchange between them, waiting included");
  // An epoch with NCCL, which is not measured.
  EXPECT_EQ(ranks_fact({a, a, b, b}, {0.5, not_measured}),
            "4 on 2 hosts (n1, n2), 8 shards; 25.0 % of the training time in the exchange between them, "
            "waiting included");
  EXPECT_EQ(ranks_fact({a, b}, {not_measured}), "2 on 2 hosts (n1, n2), 8 shards");
  std::vector<Place> many;
  for (int i = 0; i < 9; ++i) many.push_back({.host = std::to_string(i)});
  EXPECT_EQ(ranks_fact(many, {}), "9 on 9 hosts, 8 shards");
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

TEST(RunReport, Mistakes_HaveMapsOfModelsWithConvolutions) {
  TrainingData data;
  data.test = make_digits(40, 5);
  const Evaluation tested = half_wrong(data.test);
  const ImageInput input{.flat = false, .height = 28, .width = 28, .channels = 1};
  for (const bool convolutions : {true, false}) {
    const auto model = make_model(
        {.model = convolutions ? "cnn" : "mlp", .layers = {784, 10}, .channels = 1, .classes = 10}, 1);
    TrainingReport report;
    report.classes = data.test.classes;
    ImageInput of_model = input;
    of_model.flat = !convolutions;
    add_test_images(report, data, tested, LossKind::cross_entropy,
                    {.module = model.get(), .input = of_model});
    ASSERT_EQ(report.mistakes.size(), 20u);
    for (const ClassifiedImage& image : report.mistakes) EXPECT_EQ(image.map.empty(), !convolutions);
    EXPECT_EQ(training_page(report).find("how much a region speaks") != std::string::npos, convolutions);
  }
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

// A set with the images of make_digits() and that many classes.
TrainingData data_with_classes(std::int64_t images, std::size_t classes) {
  TrainingData data;
  data.train = data.test = make_digits(images, 3);
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < images; ++i)
    labels.push_back(static_cast<std::int32_t>(i / 2 % static_cast<std::int64_t>(classes)));
  data.test.labels = Tensor::from(labels, {images});
  data.test.classes.clear();
  for (std::size_t i = 0; i < classes; ++i) data.test.classes.push_back("class " + std::to_string(i));
  return data;
}

TEST(RunReport, Cells_HaveTheirMostConfidentImages) {
  const TrainOptions options;
  const TrainingData data = data_with_classes(100, 3);
  const TrainingReport report = report_of(options, data);
  ASSERT_EQ(report.cells.size(), 6u);  // half of each class is correct, half is predicted as the next one
  for (std::size_t c = 0; c < 6; ++c) {
    const CellImages& cell = report.cells[c];
    EXPECT_EQ(cell.truth == cell.predicted, c >= 3) << "mistakes first";
    EXPECT_EQ(report.confusion[cell.truth * 3 + cell.predicted], cell.truth == 2 ? 16 : 17);
    ASSERT_EQ(cell.images.size(), max_images_per_cell);
    for (std::size_t k = 0; k < cell.images.size(); ++k) {
      const ClassifiedImage& image = cell.images[k];
      EXPECT_EQ(image.truth, data.test.classes[cell.truth]);
      EXPECT_EQ(image.predicted, data.test.classes[cell.predicted]);
      EXPECT_LT(image.probability, k == 0 ? 1 : cell.images[k - 1].probability);
    }
  }
  // Images 0, 1, 6, 7, … are of class 0; the odd ones are predicted as class 1.
  EXPECT_EQ(report.cells[0].images[0].name, "image 97");
  EXPECT_EQ(report.cells[0].images[1].name, "image 91");
}

TEST(RunReport, ManyClasses_OnlyListedConfusionsHaveImages) {
  const TrainOptions options;
  const TrainingReport report = report_of(options, data_with_classes(200, 40));
  ASSERT_EQ(report.cells.size(), max_listed_confusions);
  for (const CellImages& cell : report.cells) {
    EXPECT_EQ(cell.predicted, (cell.truth + 1) % 40);
    EXPECT_FALSE(cell.images.empty());
  }
}

TEST(RunReport, LargeImages_AreJpegWithinTheLimit) {
  const TrainOptions options;
  TrainingData data = data_with_classes(100, 10);
  // Noise, which compresses badly.
  std::vector<std::uint8_t> pixels(100 * 112 * 112 * 3);
  std::uint32_t state = 1;
  for (std::uint8_t& pixel : pixels)
    pixel = static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  data.test.images = Tensor::from(pixels, {100, 112, 112, 3});
  const TrainingReport report = report_of(options, data);
  std::size_t bytes = 0, images = 0;
  for (const CellImages& cell : report.cells)
    for (const ClassifiedImage& image : cell.images) {
      EXPECT_TRUE(image.file.starts_with("\xff\xd8"));
      bytes += image.file.size();
      ++images;
    }
  EXPECT_LE(bytes, max_cell_bytes);
  EXPECT_GT(bytes, max_cell_bytes / 2);
  EXPECT_LT(images, 100u);
  const std::size_t first = report.cells.front().images.size(), last = report.cells.back().images.size();
  EXPECT_LE(first - last, 1u) << "one more image of each cell per round";
}

}  // namespace
}  // namespace tandem
