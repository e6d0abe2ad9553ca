#include "tandem/study/augment_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace tandem {
namespace {

struct MeanSpread {
  double mean = 0;
  std::optional<double> spread = {};  // only for two or more values
};

MeanSpread mean_spread(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  MeanSpread result{.mean = std::accumulate(values.begin(), values.end(), 0.0) / count};
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.spread = std::sqrt(squares / (count - 1));
  return result;
}

std::vector<double> after(const std::vector<AugmentResult::Curve>& curves, std::size_t epoch) {
  std::vector<double> values;
  for (const AugmentResult::Curve& curve : curves) values.push_back(curve[epoch]);
  return values;
}

// Augmented minus plain, per seed.
std::vector<double> leads_after(const AugmentResult& result, std::size_t epoch) {
  std::vector<double> leads = after(result.augmented, epoch);
  const std::vector<double> plain = after(result.plain, epoch);
  std::transform(leads.begin(), leads.end(), plain.begin(), leads.begin(), std::minus<>());
  return leads;
}

std::string points(const MeanSpread& lead) {
  return fmt::format("{:+.2f}{} points", 100 * lead.mean,
                     lead.spread ? fmt::format(" ± {:.2f}", 100 * *lead.spread) : "");
}

std::size_t epochs_of(const AugmentResult& result) {
  return static_cast<std::size_t>(result.augment_case.epochs);
}

}  // namespace

std::string AugmentCase::setting() const {
  return fmt::format("{} images{}", format_count(images),
                     schedule == ScheduleKind::constant ? "" : ", decaying rate");
}

std::string AugmentCase::name() const {
  return fmt::format("{}, {} seed{}", setting(), seeds, seeds == 1 ? "" : "s");
}

std::vector<StudyRow> augment_rows(const AugmentResult& result) {
  std::vector<StudyRow> rows;
  for (std::size_t epoch = 0; epoch < epochs_of(result); ++epoch) {
    const MeanSpread plain = mean_spread(after(result.plain, epoch)),
                     augmented = mean_spread(after(result.augmented, epoch)),
                     lead = mean_spread(leads_after(result, epoch));
    rows.push_back({.case_name = result.augment_case.name(),
                    .version = {},
                    .device = result.device,
                    .epoch = static_cast<int>(epoch) + 1,
                    .figures = {{"plain", plain.mean},
                                {"plain_spread", plain.spread},
                                {"augmented", augmented.mean},
                                {"augmented_spread", augmented.spread},
                                {"lead", lead.mean},
                                {"lead_spread", lead.spread},
                                {"plain_ms", result.plain_epoch.median_ms},
                                {"augmented_ms", result.augmented_epoch.median_ms}},
                    .engine = result.engine});
  }
  return rows;
}

std::string augment_finding(const AugmentResult& result) {
  const AugmentCase& what = result.augment_case;
  const std::size_t last = epochs_of(result) - 1;
  const std::vector<double> leads = leads_after(result, last);
  const MeanSpread lead = mean_spread(leads);
  const auto better_seeds = std::count_if(leads.begin(), leads.end(), [](double value) { return value > 0; });
  const auto mean_after = [&](const auto& curves, std::size_t epoch) {
    return mean_spread(after(curves, epoch)).mean;
  };
  std::string text = fmt::format(
      "{}: after {} epoch{}, training reaches {:.2f} % with augmentation and {:.2f} % without: {}, better "
      "with {} of {} seeds",
      what.setting(), what.epochs, what.epochs == 1 ? "" : "s", 100 * mean_after(result.augmented, last),
      100 * mean_after(result.plain, last), points(lead), better_seeds, what.seeds);
  std::size_t from = last + 1;  // from this epoch to the last, the mean is better
  while (from > 0 && mean_spread(leads_after(result, from - 1)).mean > 0) --from;
  if (from > 0 && from <= last) text += fmt::format(", on average from epoch {} on", from + 1);
  text += ".";
  // Shows whether more epochs would change the result.
  if (const std::size_t fifth = epochs_of(result) / 5; fifth > 0)
    text += fmt::format(
        " The last fifth of the epochs changed the accuracy by {:+.2f} points without augmentation and "
        "{:+.2f} with.",
        100 * (mean_after(result.plain, last) - mean_after(result.plain, last - fifth)),
        100 * (mean_after(result.augmented, last) - mean_after(result.augmented, last - fifth)));
  return text + fmt::format(" The median epoch took {} without augmentation and {} with.",
                            format_number(result.plain_epoch.median_ms, Unit::milliseconds),
                            format_number(result.augmented_epoch.median_ms, Unit::milliseconds));
}

Plot augment_plot(const AugmentResult& result) {
  Plot plot{.title = result.augment_case.setting(),
            .x_label = "epoch",
            .y_label = result.augment_case.seeds > 1 ? "test accuracy, mean and standard deviation over seeds"
                                                     : "test accuracy",
            .y_unit = Unit::share,
            .categories = {},
            .series = {}};
  for (const auto& [name, curves] : {std::pair{"plain", &result.plain}, {"augmented", &result.augmented}}) {
    Series series{.name = name, .x = {}, .y = {}};
    for (std::size_t epoch = 0; epoch < epochs_of(result); ++epoch) {
      series.x.push_back(static_cast<double>(epoch) + 1);
      const MeanSpread accuracy = mean_spread(after(*curves, epoch));
      series.y.push_back(accuracy.mean);
      if (!accuracy.spread) continue;
      series.low.push_back(accuracy.mean - *accuracy.spread);
      series.high.push_back(accuracy.mean + *accuracy.spread);
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

}  // namespace tandem
