#include "tandem/train/run_warnings.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tandem/core/check.h"
#include "tandem/report/interval.h"
#include "tandem/text/format_number.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

std::vector<std::int64_t> images_per_class(const TrainingData& data) {
  std::vector<std::int64_t> counts(data.train.classes.size());
  for (const std::int32_t label : data.validation.labels.to_vector<std::int32_t>())
    ++counts[static_cast<std::size_t>(label)];
  return counts;
}

}  // namespace

std::vector<std::string> data_warnings(const TrainingData& data) {
  constexpr std::int64_t min_images = 100;
  constexpr std::size_t max_names = 5;
  std::vector<std::string> warnings;
  const std::int64_t count = data.validation.count();
  if (count < min_images) {
    const Interval half = wilson_interval(0.5, count);
    warnings.push_back(
        fmt::format("only {} {} image{}: an accuracy of 50 % could be anything from {:.0f} to "
                    "{:.0f} %",
                    count, data.validated_on, count == 1 ? "" : "s", 100 * half.low, 100 * half.high));
  }
  std::vector<std::string> missing;
  const std::vector<std::int64_t> counts = images_per_class(data);
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] == 0) missing.push_back(fmt::format("'{}'", one_line(data.train.classes[i])));
  if (missing.empty()) return warnings;
  const std::size_t more = missing.size() - std::min(missing.size(), max_names);
  missing.resize(missing.size() - more);
  warnings.push_back(fmt::format("no {} images of {}{}: the figures say nothing about them",
                                 data.validated_on, fmt::join(missing, ", "),
                                 more > 0 ? fmt::format(" and {} more classes", more) : ""));
  return warnings;
}

std::vector<std::string> threshold_warnings(const TrainingData& data) {
  constexpr double max_width = 0.2;
  const std::vector<std::int64_t> counts = images_per_class(data);
  expect(counts.size() == 2);
  const std::int64_t fewer = std::min(counts[0], counts[1]);
  const Interval half = wilson_interval(0.5, fewer);
  if (half.high - half.low <= max_width) return {};
  return {
      fmt::format("too few {} images to choose a threshold by, {} of '{}' and {} of '{}': a rate of 50 % on "
                  "{} could be anything from {:.0f} to {:.0f} %",
                  data.validated_on, counts[0], one_line(data.train.classes[0]), counts[1],
                  one_line(data.train.classes[1]), fewer, 100 * half.low, 100 * half.high)};
}

std::vector<std::string> order_warnings(const TrainingData& data, bool shuffle) {
  const std::int64_t count = data.train.count(), classes = std::ssize(data.train.classes);
  if (shuffle || count <= classes || classes < 2) return {};
  const Dataset& images = *data.train.dataset;
  std::int64_t changes = 0;
  for (std::int64_t i = 1; i < count && changes < classes; ++i)
    changes += images.label(i) != images.label(i - 1);
  if (changes >= classes) return {};
  return {
      "the training images are sorted by class and not shuffled: each epoch ends with images of one class"};
}

std::vector<std::string> result_warnings(const TrainingData& data, const std::vector<EpochRecord>& epochs,
                                         const EpochRecord& kept, bool has_chance_loss, bool calibrated) {
  std::vector<std::string> warnings;
  const auto classes = static_cast<double>(data.train.classes.size());
  const double chance = std::log(classes);
  const std::string compared = fmt::format("chance (ln {:.0f} = {:.3f})", classes, chance);
  const double final_loss = epochs.back().train_loss;
  if (!std::isfinite(kept.val_loss))
    warnings.push_back(fmt::format("the {} loss of epoch {} is not finite", data.validated_on, kept.epoch));
  if (has_chance_loss && final_loss >= chance)
    warnings.push_back(
        fmt::format("the training loss ends at {:.3f}, no better than {}: the network has not "
                    "learned; a lower learning rate may help",
                    final_loss, compared));
  else if (has_chance_loss && kept.val_loss > chance && !calibrated)
    warnings.push_back(
        fmt::format("the {} loss of the kept model is {:.3f}, above {}: its probabilities are "
                    "too certain (the option calibrate corrects that), or the labels do not fit",
                    data.validated_on, kept.val_loss, compared));
  const std::vector<std::int64_t> counts = images_per_class(data);
  const auto largest = std::ranges::max_element(counts);
  const std::int64_t count = data.validation.count();
  if (count == 0 || largest == counts.end()) return warnings;
  const double share = static_cast<double>(*largest) / static_cast<double>(count);
  if (share < 1 && wilson_interval(kept.val_accuracy, count).low <= share)
    warnings.push_back(fmt::format(
        "the accuracy of {} cannot be told from always answering '{}' ({:.2f} %)",
        format_accuracy(kept.val_accuracy, count),
        one_line(data.train.classes[static_cast<std::size_t>(largest - counts.begin())]), 100 * share));
  return warnings;
}

}  // namespace tandem
