// train_record [FOLDER|generated [SEEDS [KEY=VALUE …]]]: trains CIFAR-10 with `--preset record` once per
// seed, in one process, and prints the accuracy on the test images and the seconds of every run, their means
// and their spread. FOLDER has the six files of CIFAR-10's binary version; generated images show the time
// alone. KEY=VALUE are options as in config.toml.
//
// The clock starts when images and a model with random weights are in the memory of the device, and stops
// after the last step: it counts the whitening, the capture of graphs, augmentation and steps. The evaluation
// with all its views is timed separately. A run before the first is not counted: it loads libraries and lets
// them choose algorithms.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/data/cifar10.h"
#include "tandem/device/stream.h"
#include "tandem/nn/initialized_from_data.h"
#include "tandem/ops/random.h"
#include "tandem/train/evaluate_views.h"
#include "tandem/train/training_state.h"

namespace tandem {
namespace {

struct Run {
  double training_s = 0, evaluation_s = 0;
  double plain_accuracy = 0, accuracy = 0;
};

ImageSet generated(std::int64_t count, std::uint64_t seed) {
  ImageSet set{.images = random_integers({count, 32, 32, 3}, 0, 256, {.seed = seed, .dtype = DType::u8}),
               .labels = random_integers({count}, 0, 10, {.seed = seed + 1, .dtype = DType::i32}),
               .classes = std::vector<std::string>(10)};
  for (std::size_t i = 0; i < set.classes.size(); ++i) set.classes[i] = fmt::format("class {}", i);
  return set;
}

Run train_once(TrainOptions options, const DataSplit& data, const ImageSet& test, Device device,
               std::uint64_t seed) {
  options.seed = seed;
  const TrainingImages images(data.train);
  const std::unique_ptr<Module> model = new_model(options, images);
  const ImageInput input = input_of(options, images);
  const auto wait = [&] { current_stream(device).synchronize(); };
  Run run;
  wait();
  Stopwatch watch;
  if (auto* const initialized = dynamic_cast<InitializedFromData*>(model.get()))
    initialized->initialize(
        data.train.images.slice(0, 0, std::min(data.train.count(), initialized->images_for_initialization())),
        options.norm);
  run.training_s = watch.elapsed_ms() / 1000;
  TrainingState state(*model, options, images, input, device);
  wait();
  watch = {};
  const std::int64_t steps = state.task().batches().steps();
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) state.engine().run(epoch, 0, steps);
  wait();
  run.training_s += watch.elapsed_ms() / 1000;
  const MatmulPrecisionScope precision(state.task().precision);
  watch = {};
  run.accuracy = evaluate_views(*model, test, options.loss, input, options.test_views).accuracy;
  run.evaluation_s = watch.elapsed_ms() / 1000;
  run.plain_accuracy = evaluate(*model, test, options.loss, input).accuracy;
  return run;
}

// "94.02 ± 0.13 (93.80 to 94.30)": mean, standard deviation, smallest and largest.
std::string spread_of(const std::vector<Run>& runs, double Run::*value, double scale, int digits) {
  std::vector<double> values;
  for (const Run& run : runs) values.push_back(scale * run.*value);
  double mean = 0, square = 0;
  for (const double each : values) mean += each / static_cast<double>(values.size());
  for (const double each : values) square += (each - mean) * (each - mean);
  const double deviation = values.size() > 1 ? std::sqrt(square / static_cast<double>(values.size() - 1)) : 0;
  return fmt::format("{:.{}f} ± {:.{}f} ({:.{}f} to {:.{}f})", mean, digits, deviation, digits,
                     *std::ranges::min_element(values), digits, *std::ranges::max_element(values), digits);
}

void measure(const std::vector<std::string>& words) {
  const auto word = [&](std::size_t i, const char* unless) { return words.size() > i ? words[i] : unless; };
  TrainOptions options;
  apply_preset(options, "record");
  options.augment_on = AugmentPlace::automatic;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::size_t sign = words[i].find('=');
    check(sign != std::string::npos, "expected KEY=VALUE, got '{}'", words[i]);
    const TrainField& field = train_field(words[i].substr(0, sign));
    field.set(options, parse_field_value(field, words[i].substr(sign + 1)));
  }
  options = resolve_options(options, false);
  check_options(options);
  const Device device = options.device.value_or(default_device());
  const std::string folder = word(0, "generated");
  const DataSplit data =
      folder == "generated"
          ? DataSplit{.name = folder, .train = generated(50000, 1), .test = generated(10000, 3)}
          : load_cifar10(folder);
  const ImageSet test = data.test.to(device);
  const std::int64_t seeds = std::max(std::atoll(word(1, "20").c_str()), 1LL);
  std::vector<Run> runs;
  for (std::int64_t seed = 0; seed <= seeds; ++seed) {
    const Run run = train_once(options, data, test, device, static_cast<std::uint64_t>(seed));
    fmt::print("{}: {:.3f} s, evaluation {:.3f} s, accuracy {:.2f} %, of one view {:.2f} %\n",
               seed == 0 ? std::string("warm-up") : fmt::format("seed {}", seed), run.training_s,
               run.evaluation_s, 100 * run.accuracy, 100 * run.plain_accuracy);
    std::fflush(stdout);
    if (seed > 0) runs.push_back(run);
  }
  fmt::print("{} seeds on {}: mean ± standard deviation (smallest to largest)\n", seeds, device.to_string());
  fmt::print("training, s:          {}\n", spread_of(runs, &Run::training_s, 1, 3));
  fmt::print("evaluation, s:        {}\n", spread_of(runs, &Run::evaluation_s, 1, 3));
  fmt::print("accuracy, %:          {}\n", spread_of(runs, &Run::accuracy, 100, 2));
  fmt::print("accuracy, one view:   {}\n", spread_of(runs, &Run::plain_accuracy, 100, 2));
}

}  // namespace
}  // namespace tandem

int main(int count, char** words) {
  try {
    tandem::measure({words + 1, words + count});
  } catch (const std::exception& error) {
    fmt::print(stderr, "train_record: error: {}\n", error.what());
    return 1;
  }
}
