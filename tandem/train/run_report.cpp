#include "tandem/train/run_report.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "tandem/image/encode_png.h"
#include "tandem/report/figures.h"
#include "tandem/train/metrics.h"

namespace tandem {
namespace {

constexpr std::size_t most_mistakes = 32;

// Image `index` of a set on the host, as a PNG; grey where it is not RGB.
std::string png_of(const Tensor& images, std::int64_t index) {
  const int channels = images.size(3) == 3 ? 3 : 1;
  const Tensor one = images.slice(0, index, index + 1).slice(3, 0, channels);
  Image image = make_image(images.size(1), images.size(2), channels);
  image.pixels = one.to_vector<std::uint8_t>();
  const std::vector<std::uint8_t> bytes = encode_png(image);
  return {bytes.begin(), bytes.end()};
}

// The surest of the wrong predictions.
std::vector<Mistake> worst_mistakes(const FinishedRun& run, const std::vector<std::int32_t>& labels) {
  const ImageSet& test = run.data.test;
  const std::vector<float> shares = probabilities(run.tested.outputs, run.tested.classes, run.options.loss);
  const auto share = [&](std::int64_t index) {
    return shares[static_cast<std::size_t>(index * run.tested.classes + run.tested.predictions[index])];
  };
  std::vector<std::int64_t> wrong;
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] != run.tested.predictions[i]) wrong.push_back(static_cast<std::int64_t>(i));
  std::ranges::stable_sort(wrong, std::greater<>(), share);
  wrong.resize(std::min(wrong.size(), most_mistakes));
  std::vector<Mistake> mistakes;
  mistakes.reserve(wrong.size());
  for (const std::int64_t index : wrong)
    mistakes.push_back({.png = png_of(test.images, index),
                        .truth = test.classes[static_cast<std::size_t>(labels[index])],
                        .predicted = test.classes[static_cast<std::size_t>(run.tested.predictions[index])],
                        .probability = share(index),
                        .index = index});
  return mistakes;
}

std::vector<Fact> facts(const FinishedRun& run) {
  const TrainOptions& options = run.options;
  const auto value = [&](const char* key) { return plain_text(train_field(key).get(options)); };
  std::int64_t weights = 0;
  for (const auto& [name, tensor] : run.parameters) weights += tensor.numel();
  double samples_per_second = 0;
  for (const EpochRecord& record : run.result.epochs)
    samples_per_second = std::max(samples_per_second, record.samples_per_second);
  std::vector<Fact> all{
      {"data", fmt::format("{}: {} training, {} test images", run.data.name,
                           format_count(run.data.train.count()), format_count(run.data.test.count()))},
      {"model",
       fmt::format("{}, {} parameters", architecture_of(options).to_string(), format_count(weights))},
      {"loss", value("loss")},
      {"optimiser",
       fmt::format("{}, learning rate {}, schedule {}", value("optimizer"), value("lr"), value("schedule"))},
      {"batch size", value("batch_size")},
      {"seed", value("seed")},
      {"device", options.device},
      {"engine", run.engine},
      {"samples/s", format_count(static_cast<std::int64_t>(samples_per_second))},
      {"precision", value("precision")}};
  if (options.augment != "none") {
    double waited = 0, seconds = 0;
    for (const EpochRecord& record : run.result.epochs) {
      waited += record.waited_seconds;
      seconds += record.seconds;
    }
    all.insert(
        all.begin() + 1,
        {"augmentation", fmt::format("{}; {}; the trainer waited {:.1f} % of the time", options.augment,
                                     run.augmentation, 100 * waited / std::max(seconds, 1e-9))});
  }
  if (run.data.held_out)
    all.insert(all.begin() + 1, {"held out", fmt::format("{} images, to judge the epochs on",
                                                         format_count(run.data.validation.count()))});
  return all;
}

}  // namespace

TrainingReport run_report(const FinishedRun& run) {
  const std::vector<std::int32_t> labels = run.data.test.labels.to_vector<std::int32_t>();
  return {.title = fmt::format("{} on {}", run.options.model, run.data.name),
          .command = run.command,
          .facts = facts(run),
          .epochs = run.result.epochs,
          .val_name = run.data.held_out ? "validation" : "test",
          .best_epoch = run.result.best_epoch,
          .test_accuracy = run.result.test_accuracy,
          .test_loss = run.result.test_loss,
          .total_seconds = run.result.seconds,
          .classes = run.data.test.classes,
          .confusion = confusion_matrix(labels, run.tested.predictions, run.tested.classes),
          .mistakes = worst_mistakes(run, labels)};
}

}  // namespace tandem
