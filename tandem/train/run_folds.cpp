#include "tandem/train/run_folds.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/data/folds.h"
#include "tandem/data/loader/materialize.h"
#include "tandem/nn/backbone_model.h"
#include "tandem/text/format_number.h"
#include "tandem/train/ranks.h"
#include "tandem/train/training_run.h"

namespace tandem {
namespace {

NamedTensors copy_of(const Module& model) {
  NamedTensors values;
  for (const NamedTensor& each : model.state_dict())
    values.push_back({each.name, each.tensor.clone().to(cpu_device)});
  return values;
}

std::filesystem::path fold_folder(const RunFolder& folder, int fold) {
  return folder.path / fmt::format("fold-{}", fold + 1);
}

template <class T>
std::vector<T> select(const std::vector<T>& all, const std::vector<std::int64_t>& rows) {
  std::vector<T> chosen;
  if (all.empty()) return chosen;
  for (const std::int64_t row : rows) chosen.push_back(all[static_cast<std::size_t>(row)]);
  return chosen;
}

// Whether only the last layer of a model with a backbone is trained, from the first to the last epoch.
bool is_backbone_frozen(Module& model, const FitOptions& options) {
  auto* const backbone = dynamic_cast<BackboneModel*>(&model);
  if (!backbone || options.unfreeze_at > 0) return false;
  const auto trained = [](const Module& part) {
    return std::ranges::count_if(part.parameters(),
                                 [](const NamedTensor& each) { return each.tensor.requires_grad(); });
  };
  return trained(model) == trained(backbone->head_layer());
}

std::string cost_of_folds(Module& model, const FitOptions& options, std::size_t folds) {
  return fmt::format("Cross-validation: {} runs of {} epoch{}, then one on all images{}", folds,
                     options.epochs, options.epochs == 1 ? "" : "s",
                     is_backbone_frozen(model, options)
                         ? "; fit_head and one epoch would compute the features of the frozen layers once"
                         : "");
}

// The folds of runs with gradient steps, in order.
class FoldRuns {
 public:
  FoldRuns(RunSetup& setup, Module& model, CrossValidation& result, const RunFolder& folder,
           const FitCallbacks& callbacks)
      : setup_(setup), model_(model), result_(result), folder_(folder), callbacks_(callbacks) {}

  // Returns the result of a run that a signal stopped; its epochs are empty if all were finished.
  TrainResult run(const std::function<void()>& after_first) {
    const NamedTensors start = copy_of(model_);
    std::vector<bool> is_trained;
    for (const NamedTensor& each : model_.parameters()) is_trained.push_back(each.tensor.requires_grad());
    for (std::size_t fold = 0; fold < result_.folds.size(); ++fold) {
      TrainResult stopped = run_fold(static_cast<int>(fold));
      if (fold == 0) after_first();
      if (stopped.stopped_by != 0) return stopped;
      model_.load_state_dict(start);
      auto trained = is_trained.begin();  // as before unfreeze_at
      for (NamedTensor& each : model_.parameters()) each.tensor.set_requires_grad(*trained++);
    }
    return {};
  }

 private:
  TrainingData data_of(int fold) const {
    const std::vector<std::int64_t> held_out = result_.rows(fold, true);
    TrainingData data = setup_.data;
    data.train.dataset = subset(data.train.dataset, result_.rows(fold, false));
    data.validation = data.test = data.validation.select(held_out);
    data.validation_names = data.test_names = select(data.validation_names, held_out);
    data.validated_on = data.tested_on = "held-out";
    return data;
  }

  TomlTable config_of(const FitOptions& chosen) const {
    TomlTable table = setup_.config(chosen);
    for (TomlEntry& entry : table.entries)
      if (entry.key == "folds") entry.value = std::int64_t{0};
    return table;
  }

  TrainResult run_fold(int fold) {
    RunSetup one{.options = setup_.options,
                 .data = data_of(fold),
                 .architecture = setup_.architecture,
                 .input = setup_.input,
                 .facts = setup_.facts,
                 .config = [this](const FitOptions& chosen) { return config_of(chosen); },
                 .group = setup_.group,
                 .timeline = nullptr};
    one.options.run_folder = fold_folder(folder_, fold);
    one.options.trace.clear();
    one.options.accept_changed_data = false;  // other images would be in other folds
    one.options.calibrate = false;            // the images of a fold are only measured
    one.options.threshold = {};
    const std::vector<std::int32_t> labels = one.data.validation.labels.to_vector<std::int32_t>();
    FitCallbacks callbacks = callbacks_;
    callbacks.on_epoch = {};
    callbacks.on_message = {};
    if (fold == 0 && callbacks_.on_message)  // what it says of its few images is not true of all folds
      callbacks.on_message = [this](const std::string& line) {
        if (!line.starts_with("Warning: ")) callbacks_.on_message(line);
      };
    const Stopwatch watch;
    TrainingRun run(std::move(one), model_, callbacks);
    TrainResult result = run.run();
    if (result.stopped_by != 0) {
      result.folder = folder_.path;
      return result;
    }
    add_epochs(result, fold);
    setup_.options.device = run.options().device;  // measured once
    setup_.options.augment_on = run.options().augment_on;
    setup_.options.workers = run.options().workers;
    setup_.options.learning_rate = run.options().learning_rate;
    setup_.options.batch_size = run.options().batch_size;
    const FoldRecord& record =
        result_.add_fold(run.tested(), labels, std::max(result.seconds, watch.elapsed_ms() / 1000));
    result_.seconds += record.seconds;
    if (callbacks_.on_fold) callbacks_.on_fold(record);
    return result;
  }

  // Adds the fold's share of the mean over all images.
  void add_epochs(const TrainResult& result, int fold) {
    const double share = static_cast<double>(result_.folds[static_cast<std::size_t>(fold)].images) /
                         static_cast<double>(result_.fold_of.size());
    if (result_.epochs.empty()) {
      result_.epochs.resize(result.epochs.size(), {.val_loss = 0, .val_accuracy = 0});
      for (std::size_t i = 0; i < result.epochs.size(); ++i)
        for (const NamedFigure& metric : result.epochs[i].metrics)
          result_.epochs[i].metrics.push_back({metric.name, 0});
    }
    expect(result.epochs.size() == result_.epochs.size());
    for (std::size_t i = 0; i < result.epochs.size(); ++i) {
      EpochRecord& mean = result_.epochs[i];
      mean.val_loss += share * result.epochs[i].val_loss;
      mean.val_accuracy += share * result.epochs[i].val_accuracy;
      for (std::size_t m = 0; m < mean.metrics.size(); ++m)
        mean.metrics[m].value += share * result.epochs[i].metrics[m].value;
    }
  }

  RunSetup& setup_;
  Module& model_;
  CrossValidation& result_;
  const RunFolder& folder_;
  const FitCallbacks& callbacks_;
};

}  // namespace

void add_folds(RunSetup& setup, const Transform& evaluation, std::int64_t folds, std::uint64_t seed) {
  TrainingData& data = setup.data;
  const std::shared_ptr<const Dataset> all = data.train.dataset;
  const auto* const in_memory = dynamic_cast<const ImageDataset*>(all.get());
  PhotoSet images = in_memory && evaluation.empty()
                        ? PhotoSet{.images = in_memory->images(), .names = {}, .bad = {}}
                        : materialize_named(*all, evaluation);
  std::set<std::int64_t> bad;
  for (const SkippedSample& sample : images.bad) bad.insert(sample.sample);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < all->size(); ++i)
    if (!bad.contains(i)) rows.push_back(i);
  if (!bad.empty()) data.train.dataset = subset(all, rows);
  data.train.unreadable = 0;
  data.bad.insert(data.bad.end(), images.bad.begin(), images.bad.end());
  data.validation = data.test = images.images;
  data.validation_names = data.test_names = std::move(images.names);
  data.held_out = data.chooses_model = false;
  data.validated_on = data.tested_on = "cross-validated";
  setup.fold_of =
      stratified_folds(data.validation.labels.to_vector<std::int32_t>(), data.train.classes, folds, seed);
}

TrainResult run_folds(RunSetup setup, Module& model, const FitCallbacks& callbacks) {
  if (!setup.options.has_steps()) return TrainingRun(std::move(setup), model, callbacks).run();
  check_threshold(setup.options.threshold, setup.data);
  check(setup.options.feature_precision == FeaturePrecision::automatic,
        "[train] folds with feature_precision require fit_head and one epoch, got gradient steps");
  const std::unique_ptr<Group> alone = setup.group ? nullptr : solo_group();
  Group& group = setup.group ? *setup.group : *alone;
  const bool is_first = group.place().rank == 0;
  RunFolder folder{setup.options.run_folder};
  std::optional<FolderLock> lock;
  bool has_config = false;
  if (is_first) {
    folder = make_run_folder(folder.path, setup.options.data_name, setup.options.model_name);
    lock = lock_run_folder(folder, setup.options.resume);
    check(!has_checkpoint(folder) || std::filesystem::exists(fold_folder(folder, 0)),
          "[train] {}: its folds fitted the last layer only: expected one epoch to resume it, got {}",
          folder.path.string(), setup.options.epochs);
    has_config = std::filesystem::exists(folder.config());
    if (!has_config) write_file("train", folder.config(), to_toml(setup.config(setup.options)));
  }
  folder.path = broadcast_text(group, folder.path.string());
  setup.options.run_folder = folder.path;
  CrossValidation result(std::exchange(setup.fold_of, {}), std::ssize(setup.data.train.classes));
  if (is_first && callbacks.on_message)
    callbacks.on_message(cost_of_folds(model, setup.options, result.folds.size()));
  // A configuration that the first fold refuses does not replace the one that is there.
  const auto write_config = [&] {
    if (has_config) write_file("train", folder.config(), to_toml(setup.config(setup.options)));
  };
  TrainResult stopped = FoldRuns(setup, model, result, folder, callbacks).run(write_config);
  if (stopped.stopped_by != 0) return stopped;
  lock.reset();  // the last run locks it
  if (is_first && callbacks.on_message)
    callbacks.on_message(fmt::format("Training on all {} images", format_count(std::ssize(result.fold_of))));
  setup.cross_validation = std::move(result);
  return TrainingRun(std::move(setup), model, callbacks).run();
}

}  // namespace tandem
