#include "tandem/study/probe/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include "tandem/core/check.h"
#include "tandem/data/shuffle.h"
#include "tandem/study/probe/few_shot.h"
#include "tandem/study/probe/nearest_neighbors.h"
#include "tandem/study/probe/probe_data.h"
#include "tandem/study/probe/probe_features.h"
#include "tandem/train/logistic_regression.h"

namespace tandem {
namespace {

using Indices = std::vector<std::int64_t>;
using Labels = std::vector<std::int32_t>;

constexpr std::int64_t max_neighbors = 20;
constexpr std::size_t calibration_images = 512;

// Labeled and test images, the same for all models.
struct Experiment {
  std::vector<std::string> classes;
  Indices train;  // the images that any draw labels
  Labels train_labels;
  std::map<std::int64_t, std::vector<Indices>> draws;  // by images per class; indices in `train`
  Indices test;
  Labels test_labels;
};

// Whether the test images were classified correctly, by draw.
struct Outcome {
  Correct linear, nearest;
};

Labels labels_of(const ProbeImages& images, const Indices& indices) {
  Labels labels;
  for (const std::int64_t i : indices) labels.push_back(images.labels[static_cast<std::size_t>(i)]);
  return labels;
}

Experiment make_experiment(const ProbeData& data, const ProbeOptions& options) {
  Experiment experiment{.classes = data.classes};
  for (const std::int64_t per_class : options.per_class)
    for (std::int64_t draw = 0; draw < options.draws; ++draw)
      experiment.draws[per_class].push_back(
          choose_labeled(data.train.labels, data.classes, per_class, {options.seed, draw}));
  for (const auto& [per_class, draws] : experiment.draws)
    for (const Indices& images : draws)
      experiment.train.insert(experiment.train.end(), images.begin(), images.end());
  std::ranges::sort(experiment.train);
  experiment.train.erase(std::unique(experiment.train.begin(), experiment.train.end()),
                         experiment.train.end());
  for (auto& [per_class, draws] : experiment.draws)
    for (Indices& images : draws)
      for (std::int64_t& image : images)
        image = std::ranges::lower_bound(experiment.train, image) - experiment.train.begin();
  experiment.train_labels = labels_of(data.train, experiment.train);
  experiment.test = readable_images(data.test, options.limit);
  experiment.test_labels = labels_of(data.test, experiment.test);
  return experiment;
}

void check_finite(const Features& features, const std::string& model) {
  const auto bad = std::ranges::find_if(features.values, [](float value) { return !std::isfinite(value); });
  check(bad == features.values.end(), "[probe] {}: expected finite features, got {}", model,
        bad == features.values.end() ? 0 : *bad);
}

// Calls f(rows) for all rows, a part at a time.
template <class F>
void for_parts(std::int64_t count, F&& f) {
  constexpr std::int64_t part = 1024;
  for (std::int64_t begin = 0; begin < count; begin += part) {
    Indices rows(static_cast<std::size_t>(std::min(part, count - begin)));
    std::iota(rows.begin(), rows.end(), begin);
    f(rows);
  }
}

void add_correct(const Labels& predictions, std::span<const std::int32_t> labels,
                 std::vector<std::uint8_t>& correct) {
  for (std::size_t i = 0; i < predictions.size(); ++i) correct.push_back(predictions[i] == labels[i] ? 1 : 0);
}

// One draw: fits the probes to the labeled images and adds what they predict.
void run_draw(const Experiment& experiment, const Indices& labeled, std::int64_t per_class,
              const Features& train, const Features& test, Outcome& outcome) {
  const auto classes = static_cast<std::int64_t>(experiment.classes.size());
  const Standardization standardize(train, labeled);
  const Features x = select_rows(train, labeled);
  Labels labels;
  for (const std::int64_t i : labeled) labels.push_back(experiment.train_labels[static_cast<std::size_t>(i)]);
  const LogisticModel model = fit_logistic(standardize(train, labeled), labels, classes);
  std::vector<std::uint8_t>& linear = outcome.linear.emplace_back();
  std::vector<std::uint8_t>& nearest = outcome.nearest.emplace_back();
  for_parts(test.count, [&](const Indices& rows) {
    const std::span<const std::int32_t> truth =
        std::span(experiment.test_labels).subspan(static_cast<std::size_t>(rows.front()));
    add_correct(model.predict(standardize(test, rows)), truth, linear);
    add_correct(nearest_neighbor_classes({x, labels, classes}, select_rows(test, rows),
                                         std::min(max_neighbors, per_class)),
                truth, nearest);
  });
}

ProbeScore score_of(const Correct& correct, const Correct* base) {
  ProbeScore score{.accuracies = accuracies(correct)};
  if (base) score.difference = paired_difference(correct, *base);
  return score;
}

double majority_share(const Labels& labels, std::size_t classes) {
  std::vector<std::int64_t> counts(classes);
  for (const std::int32_t label : labels) ++counts[static_cast<std::size_t>(label)];
  return static_cast<double>(std::ranges::max(counts)) / static_cast<double>(labels.size());
}

void calibrate(ProbeModel& model, const ProbeData& data, std::uint64_t seed) {
  const bool has_statistics = std::ranges::any_of(model.module->buffers(), [](const NamedTensor& buffer) {
    return buffer.name.ends_with("running_mean");
  });
  if (!model.calibrates || !has_statistics) return;
  const Indices readable = readable_images(data.train);
  const Shuffle shuffle(static_cast<std::uint32_t>(readable.size()), seed, 0);  // folders are sorted by class
  Indices images;
  for (std::uint32_t i = 0; i < std::min(readable.size(), calibration_images); ++i)
    images.push_back(readable[shuffle(i)]);
  calibrate_statistics(model, *data.train.dataset, images);
  model.weights += fmt::format(", statistics of {} images", images.size());
}

// Probes of one model, by images per class.
std::vector<Outcome> run_model(ProbeModel& model, const ProbeData& data, const Experiment& experiment,
                               const ProbeOptions& options, std::int64_t& features) {
  model.module->to(options.device);
  calibrate(model, data, options.seed);
  const std::int64_t train_count = std::ssize(experiment.train),
                     total = train_count + std::ssize(experiment.test);
  const auto progress = [&](std::int64_t before) {
    return [&, before](std::int64_t done, std::int64_t) {
      if (options.on_progress) options.on_progress(model.name, before + done, total);
    };
  };
  const Features train = compute_features(model, *data.train.dataset, experiment.train, progress(0));
  const Features test = compute_features(model, *data.test.dataset, experiment.test, progress(train_count));
  check_finite(train, model.name);
  check_finite(test, model.name);
  features = train.width;
  std::vector<Outcome> outcomes;
  for (const auto& [per_class, draws] : experiment.draws) {
    Outcome& outcome = outcomes.emplace_back();
    for (const Indices& labeled : draws) run_draw(experiment, labeled, per_class, train, test, outcome);
  }
  return outcomes;
}

std::string input_description(const ModelInfo& info) {
  return fmt::format("{}x{} {}", info.height, info.width, info.channels == 1 ? "gray" : "RGB");
}

}  // namespace

ProbeReport probe(const ProbeOptions& options) {
  check(!options.models.empty() && !options.per_class.empty() && options.draws >= 1,
        "[probe] expected models, numbers of labeled images and draws, got {}, {} and {}",
        options.models.size(), options.per_class.size(), options.draws);
  const ProbeData data = load_probe_data(options.data, options.from, options.seed, options.on_message);
  const Experiment experiment = make_experiment(data, options);
  constexpr std::int64_t photo_size = 224, small_size = 112;
  const ProbeModelOptions model_options{.architecture = options.architecture,
                                        .image_size = options.image_size > 0 ? options.image_size
                                                      : data.photographs     ? photo_size
                                                                             : small_size,
                                        .resizes_all = options.image_size > 0,
                                        .seed = options.seed};
  std::vector<ProbeModel> models;  // all before anything is computed: errors come early
  for (const std::string& name : options.models) models.push_back(load_probe_model(name, model_options));

  ProbeReport report{.data = data.name,
                     .tested_on = data.tested_on,
                     .test_images = std::ssize(experiment.test),
                     .classes = std::ssize(data.classes),
                     .majority_share = majority_share(experiment.test_labels, data.classes.size()),
                     .draws = options.draws,
                     .seed = options.seed,
                     .penalty = LogisticOptions{}.penalty,
                     .not_read = data.not_read,
                     .models = {}};
  std::vector<Outcome> first;
  for (ProbeModel& model : models) {
    ProbedModel probed{.name = model.name, .architecture = model.info.architecture.model};
    const std::vector<Outcome> outcomes = run_model(model, data, experiment, options, probed.features);
    probed.weights = model.weights;
    probed.input = input_description(model.info);
    std::size_t i = 0;
    for (const auto& [per_class, draws] : experiment.draws) {
      probed.results.push_back(
          {.per_class = per_class,
           .linear = score_of(outcomes[i].linear, first.empty() ? nullptr : &first[i].linear),
           .nearest = score_of(outcomes[i].nearest, first.empty() ? nullptr : &first[i].nearest)});
      ++i;
    }
    if (first.empty()) first = outcomes;
    report.models.push_back(std::move(probed));
    model.module.reset();
  }
  return report;
}

}  // namespace tandem
