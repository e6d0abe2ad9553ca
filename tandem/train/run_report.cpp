#include "tandem/train/run_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tandem/report/provenance.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

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
  if (!result.folds.empty())
    return fmt::format("trained on all {} images; the figures are of the {} models of the folds",
                       format_count(run.data.train.count()), result.folds.size());
  if (result.epochs.size() == 1) return "the only epoch: nothing was chosen";
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

// The part of the training time, of the epochs in which it was measured.
std::string exchange_share(const std::vector<EpochRecord>& epochs) {
  double exchange = 0, seconds = 0;
  for (const EpochRecord& record : epochs) {
    if (!std::isfinite(record.exchange_seconds)) continue;
    exchange += record.exchange_seconds;
    seconds += record.seconds;
  }
  if (!(seconds > 0)) return "";
  return fmt::format("; {:.1f} % of the training time in the exchange between them, waiting included",
                     100 * exchange / seconds);
}

std::string ranks_text(const ReportedRun& run) {
  constexpr std::size_t max_hosts = 8;
  std::vector<std::string> hosts;
  for (const Place& place : run.ranks)
    if (std::ranges::find(hosts, place.host) == hosts.end()) hosts.push_back(place.host);
  std::string where = hosts.front();
  if (hosts.size() > 1) where = fmt::format("{} hosts", hosts.size());
  if (hosts.size() > 1 && hosts.size() <= max_hosts) where += fmt::format(" ({})", fmt::join(hosts, ", "));
  return fmt::format("{} on {}, {} shards{}", run.ranks.size(), where, run.options.shards,
                     exchange_share(run.result.epochs));
}

std::string loss_text(const FitOptions& options, const std::string& name) {
  if (options.loss_function) return "a function of the caller";
  if (options.loss != LossKind::focal) return name;
  return fmt::format("{}, gamma {}; validation by cross-entropy", name, options.focal_gamma);
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
      {"loss", loss_text(options, value("loss"))},
      {"seed", value("seed")},
      {"device", value("device")},
      {"engine", run.engine},
      {"samples/s", fmt::format("{} (median of the epochs)", format_count(median_rate(run.result.epochs)))},
      {"precision", value("precision")}};
  if (options.has_steps())
    all.insert(all.begin() + 3,
               {{"optimizer", fmt::format("{}, learning rate {}, schedule {}",
                                          options.make_optimizer ? "one of the caller" : value("optimizer"),
                                          value("lr"), value("schedule"))},
                {"batch size", value("batch_size")}});
  if (options.fit_head) all.push_back({"last layer", "fitted by logistic regression in epoch 1"});
  if (run.ranks.size() > 1) all.push_back({"ranks", ranks_text(run)});
  if (options.has_steps() && !options.transform.empty()) {
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
                        .fp32_accuracy = run.result.fp32_accuracy,
                        .total_seconds = run.result.seconds,
                        .classes = run.data.test.classes,
                        .confusion = {},
                        .test_name = run.data.tested_on,
                        .folds = run.result.folds,
                        .cells = {},
                        .mistakes = {},
                        .most_confident = {}};
  report.range_test = run.range_test;
  if (run.options.mixup > 0 || run.options.cutmix > 0)
    report.batch_note = "Mixing two images (mixup, cutmix) comes after.";
  report.calibration = run.calibration;
  if (run.tested) add_test_images(report, run.data, *run.tested, run.options.loss, run.model);
  if (run.tested) add_curves(report, run.data, *run.tested, run.options.loss, run.result.decision);
  if (report.curves && run.options.threshold.automatic)
    report.curves->note = fmt::format(
        "The threshold has the largest difference of both rates (Youden’s J) on {}.",
        run.data.held_out ? fmt::format("{} validation images", format_count(run.data.validation.count()))
                          : "these images: expect a little less on new ones");
  return report;
}

}  // namespace tandem
