#include "tandem/train/run_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "tandem/core/parallel.h"
#include "tandem/image/encode_png.h"
#include "tandem/image/resize_area.h"
#include "tandem/report/figures.h"
#include "tandem/train/metrics.h"

namespace tandem {
namespace {

constexpr std::size_t most_mistakes = 32, most_photos = 12;
constexpr std::int64_t photo_side = 112;

// Image `index` of a set on the host, as a PNG; grey where it is not RGB.
std::string png_of(const Tensor& images, std::int64_t index) {
  const int channels = images.size(3) == 3 ? 3 : 1;
  const Tensor one = images.slice(0, index, index + 1).slice(3, 0, channels);
  Image image = make_image(images.size(1), images.size(2), channels);
  image.pixels = one.to_vector<std::uint8_t>();
  if (std::max(image.height, image.width) > photo_side) image = resize_area(image, photo_side, photo_side);
  const std::vector<std::uint8_t> bytes = encode_png(image);
  return {bytes.begin(), bytes.end()};
}

// With the folder it is in, which is its class's.
std::string short_name(const std::string& path) {
  const std::filesystem::path whole = path;
  return (whole.parent_path().filename() / whole.filename()).string();
}

// The images tested, and how sure the network was of each.
struct Judged {
  const FinishedRun& run;
  std::vector<std::int32_t> labels;
  std::vector<float> shares;

  bool right(std::size_t image) const { return labels[image] == run.tested.predictions[image]; }
  float share(std::size_t image) const {
    return shares[image * static_cast<std::size_t>(run.tested.classes) +
                  static_cast<std::size_t>(run.tested.predictions[image])];
  }
};

// The surest of the wrong predictions, or of the right ones.
std::vector<std::size_t> surest(const Judged& judged, bool right, std::size_t most) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < judged.labels.size(); ++i)
    if (judged.right(i) == right) chosen.push_back(i);
  std::ranges::stable_sort(chosen, std::greater<>(), [&](std::size_t i) { return judged.share(i); });
  chosen.resize(std::min(chosen.size(), most));
  return chosen;
}

// PNGs take milliseconds each: the threads share them.
std::vector<JudgedImage> pictures(const Judged& judged, const std::vector<std::size_t>& chosen) {
  const TrainingData& data = judged.run.data;
  std::vector<JudgedImage> images(chosen.size());
  parallel_tasks(std::ssize(chosen), 1, [&] {
    return [&](std::int64_t at, std::int64_t) {
      const std::size_t i = chosen[static_cast<std::size_t>(at)];
      images[static_cast<std::size_t>(at)] = {
          .png = png_of(data.test.images, static_cast<std::int64_t>(i)),
          .truth = data.test.classes[static_cast<std::size_t>(judged.labels[i])],
          .predicted = data.test.classes[static_cast<std::size_t>(judged.run.tested.predictions[i])],
          .probability = judged.share(i),
          .name = data.test_names.empty() ? fmt::format("image {}", i) : short_name(data.test_names[i])};
    };
  });
  return images;
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
      {"data",
       fmt::format("{}: {} training, {} {} images", run.data.name, format_count(run.data.train.count()),
                   format_count(run.data.test.count()), run.data.tested_on)},
      {"model", fmt::format("{}, {} parameters", architecture_of(options, run.data.train).to_string(),
                            format_count(weights))},
      {"loss", value("loss")},
      {"optimiser",
       fmt::format("{}, learning rate {}, schedule {}", value("optimizer"), value("lr"), value("schedule"))},
      {"batch size", value("batch_size")},
      {"seed", value("seed")},
      {"device", options.device},
      {"engine", run.engine},
      {"samples/s", format_count(static_cast<std::int64_t>(samples_per_second))},
      {"precision", value("precision")}};
  if (options.augment != "none" || run.data.train.photos) {
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
  if (run.data.train.photos)
    all.insert(all.begin() + 1, {"images", fmt::format("{} pixels a side; judged by '{}'", options.image_size,
                                                       to_string(options.evaluation_recipe()))});
  if (options.pretrained != "none" || options.freeze)
    all.push_back({"begun with",
                   fmt::format("{}{}{}", options.pretrained == "none" ? "random weights" : options.pretrained,
                               options.freeze ? ", all but the last layer frozen" : "",
                               options.freeze_bn ? ", statistics fixed" : "")});
  if (run.data.held_out)
    all.insert(all.begin() + 1, {"held out", fmt::format("{} images, to judge the epochs on",
                                                         format_count(run.data.validation.count()))});
  return all;
}

}  // namespace

TrainingReport run_report(const FinishedRun& run) {
  const Judged judged{.run = run,
                      .labels = run.data.test.labels.to_vector<std::int32_t>(),
                      .shares = probabilities(run.tested.outputs, run.tested.classes, run.options.loss)};
  const bool photos = run.data.train.photos != nullptr;
  std::vector<std::size_t> shown = surest(judged, false, photos ? most_photos : most_mistakes);
  const auto mistakes = std::ssize(shown);
  if (photos) std::ranges::copy(surest(judged, true, most_photos), std::back_inserter(shown));
  const std::vector<JudgedImage> images = pictures(judged, shown);
  return {.title = fmt::format("{} on {}", run.options.model, run.data.name),
          .command = run.command,
          .facts = facts(run),
          .epochs = run.result.epochs,
          .val_name = run.data.judged_on,
          .best_epoch = run.result.best_epoch,
          .test_accuracy = run.result.test_accuracy,
          .test_loss = run.result.test_loss,
          .total_seconds = run.result.seconds,
          .classes = run.data.test.classes,
          .confusion = confusion_matrix(judged.labels, run.tested.predictions, run.tested.classes),
          .test_name = run.data.tested_on,
          .mistakes = {images.begin(), images.begin() + mistakes},
          .surest = {images.begin() + mistakes, images.end()}};
}

}  // namespace tandem
