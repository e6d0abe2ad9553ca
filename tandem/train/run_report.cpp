#include "tandem/train/run_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "tandem/core/parallel.h"
#include "tandem/image/encode_png.h"
#include "tandem/image/resize_area.h"
#include "tandem/report/provenance.h"
#include "tandem/text/format_number.h"
#include "tandem/train/metrics.h"

namespace tandem {
namespace {

constexpr std::size_t max_mistakes = 32, max_photos = 12;
constexpr std::int64_t photo_side = 112;

// Image `index` of a set on the host, as a PNG; gray where it is not RGB.
std::string png_of(const Tensor& images, std::int64_t index) {
  const int channels = images.size(3) == 3 ? 3 : 1;
  const Tensor one = images.slice(0, index, index + 1).slice(3, 0, channels);
  Image image = make_image(images.size(1), images.size(2), channels);
  image.pixels = one.to_vector<std::uint8_t>();
  if (std::max(image.height, image.width) > photo_side) image = resize_area(image, photo_side, photo_side);
  const std::vector<std::uint8_t> bytes = encode_png(image);
  return {bytes.begin(), bytes.end()};
}

// File name with its parent folder, which is the class.
std::string short_name(const std::string& path) {
  const std::filesystem::path full = path;
  return (full.parent_path().filename() / full.filename()).string();
}

// The test images with their labels and predictions.
struct TestedImages {
  const ReportedRun& run;
  std::vector<std::int32_t> labels;
  std::vector<float> probabilities;  // images × classes

  bool is_correct(std::size_t image) const { return labels[image] == run.tested->predictions[image]; }
  float confidence(std::size_t image) const {
    return probabilities[image * static_cast<std::size_t>(run.tested->classes) +
                         static_cast<std::size_t>(run.tested->predictions[image])];
  }
};

// Indices of the correct or of the wrong predictions, the most confident first.
std::vector<std::size_t> most_confident(const TestedImages& tested, bool correct, std::size_t max_count) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < tested.labels.size(); ++i)
    if (tested.is_correct(i) == correct) chosen.push_back(i);
  std::ranges::stable_sort(chosen, std::greater<>(), [&](std::size_t i) { return tested.confidence(i); });
  chosen.resize(std::min(chosen.size(), max_count));
  return chosen;
}

// In parallel, because encoding a PNG takes milliseconds.
std::vector<ClassifiedImage> classified_images(const TestedImages& tested,
                                               const std::vector<std::size_t>& chosen) {
  const TrainingData& data = tested.run.data;
  std::vector<ClassifiedImage> images(chosen.size());
  parallel_tasks(std::ssize(chosen), 1, [&] {
    return [&](std::int64_t task, std::int64_t) {
      const std::size_t i = chosen[static_cast<std::size_t>(task)];
      images[static_cast<std::size_t>(task)] = {
          .png = png_of(data.test.images, static_cast<std::int64_t>(i)),
          .truth = data.test.classes[static_cast<std::size_t>(tested.labels[i])],
          .predicted = data.test.classes[static_cast<std::size_t>(tested.run.tested->predictions[i])],
          .probability = tested.confidence(i),
          .name = data.test_names.empty() ? fmt::format("image {}", i) : short_name(data.test_names[i])};
    };
  });
  return images;
}

std::int64_t median_rate(const std::vector<EpochRecord>& epochs) {
  std::vector<double> rates;
  for (const EpochRecord& record : epochs) rates.push_back(record.samples_per_second);
  if (rates.empty()) return 0;
  std::ranges::sort(rates);
  const std::size_t middle = rates.size() / 2;
  const double median = rates.size() % 2 == 1 ? rates[middle] : (rates[middle - 1] + rates[middle]) / 2;
  return static_cast<std::int64_t>(median);
}

// Which data chose the model, and what that means for the figures.
std::string kept_model(const ReportedRun& run) {
  const TrainResult& result = run.result;
  const std::string epoch = fmt::format("epoch {}", result.best_epoch);
  if (result.chosen_on.empty())
    return epoch + fmt::format(", the last one; no data chose it, and the {} set was only measured",
                               run.data.tested_on);
  const std::string chosen = fmt::format("{}, the best accuracy on {} {} images", epoch,
                                         format_count(run.data.validation.count()), result.chosen_on);
  return chosen + (run.data.held_out
                       ? fmt::format("; the {} set chose nothing", run.data.tested_on)
                       : "; the figures are measured on the images that chose it: expect less on new ones");
}

std::vector<Fact> facts(const ReportedRun& run) {
  TrainOptions options;  // for the texts of its fields
  static_cast<FitOptions&>(options) = run.options;
  const auto value = [&](const char* key) { return plain_text(train_field(key).get(options)); };
  std::int64_t weights = 0;
  for (const auto& [name, tensor] : run.parameters) weights += tensor.numel();
  std::vector<Fact> all{
      {"data",
       fmt::format("{}: {} training, {} {} images", run.data.name, format_count(run.data.train.count()),
                   format_count(run.data.test.count()), run.data.tested_on)},
      {"model", fmt::format("{}, {} parameters", run.architecture.to_string(), format_count(weights))},
      {"loss", options.loss_function ? "a function of the caller" : value("loss")},
      {"optimizer", fmt::format("{}, learning rate {}, schedule {}",
                                options.make_optimizer ? "one of the caller" : value("optimizer"),
                                value("lr"), value("schedule"))},
      {"batch size", value("batch_size")},
      {"seed", value("seed")},
      {"device", value("device")},
      {"engine", run.engine},
      {"samples/s", fmt::format("{} (median of the epochs)", format_count(median_rate(run.result.epochs)))},
      {"precision", value("precision")}};
  if (!options.transform.empty()) {
    double waited_seconds = 0, seconds = 0;
    for (const EpochRecord& record : run.result.epochs) {
      waited_seconds += record.waited_seconds;
      seconds += record.seconds;
    }
    all.insert(
        all.begin() + 1,
        {"augmentation", fmt::format("{}; {}; the trainer waited {:.1f} % of the time", value("augment"),
                                     run.augmentation, 100 * waited_seconds / std::max(seconds, 1e-9))});
  }
  if (!run.data.evaluation_transform.empty())
    all.insert(all.begin() + 1,
               {"images", fmt::format("{} × {} pixels; validated with '{}'", run.data.train.height,
                                      run.data.train.width, run.data.evaluation_transform)});
  all.insert(all.end(), run.facts.begin(), run.facts.end());
  if (run.result.best_epoch > 0) all.insert(all.begin() + 1, {"kept model", kept_model(run)});
  if (run.data.held_out)
    all.insert(all.begin() + 1, {"held out", fmt::format("{} images for validation",
                                                         format_count(run.data.validation.count()))});
  return all;
}

}  // namespace

namespace {

void add_tested(TrainingReport& report, const ReportedRun& run) {
  const TestedImages tested{
      .run = run,
      .labels = run.data.test.labels.to_vector<std::int32_t>(),
      .probabilities = probabilities(run.tested->outputs, run.tested->classes, run.options.loss)};
  const bool photos = run.data.train.photographs;
  std::vector<std::size_t> shown = most_confident(tested, false, photos ? max_photos : max_mistakes);
  const auto mistakes = std::ssize(shown);
  if (photos) std::ranges::copy(most_confident(tested, true, max_photos), std::back_inserter(shown));
  const std::vector<ClassifiedImage> images = classified_images(tested, shown);
  report.confusion = confusion_matrix(tested.labels, run.tested->predictions, run.tested->classes);
  report.mistakes = {images.begin(), images.begin() + mistakes};
  report.most_confident = {images.begin() + mistakes, images.end()};
}

}  // namespace

TrainingReport run_report(const ReportedRun& run) {
  TrainingReport report{.title = fmt::format("{} on {}", run.architecture.model, run.data.name),
                        .command = run.options.command,
                        .facts = facts(run),
                        .provenance = provenance(run.options.command, run.options.seed),
                        .epochs = run.result.epochs,
                        .val_name = run.data.validated_on,
                        .best_epoch = run.result.best_epoch,
                        .chosen_on = run.result.chosen_on,
                        .warnings = run.result.warnings,
                        .test_accuracy = run.result.test_accuracy,
                        .test_loss = run.result.test_loss,
                        .total_seconds = run.result.seconds,
                        .classes = run.data.test.classes,
                        .confusion = {},
                        .test_name = run.data.tested_on,
                        .mistakes = {},
                        .most_confident = {}};
  if (run.tested) add_tested(report, run);
  return report;
}

}  // namespace tandem
