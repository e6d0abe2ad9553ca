#include "tandem/train/cross_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/report/csv.h"
#include "tandem/train/metrics.h"

namespace tandem {
namespace {

// Mean cross-entropy of logits, which become f32 outputs.
Evaluation evaluation_of(const std::vector<double>& logits, std::span<const std::int32_t> labels,
                         std::int64_t classes) {
  Evaluation evaluation{.classes = classes};
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span row(logits.data() + i * static_cast<std::size_t>(classes),
                        static_cast<std::size_t>(classes));
    const auto best = std::ranges::max_element(row);
    double sum = 0;
    for (const double value : row) sum += std::exp(value - *best);
    evaluation.loss += *best + std::log(sum) - row[static_cast<std::size_t>(labels[i])];
    evaluation.predictions.push_back(static_cast<std::int32_t>(best - row.begin()));
    for (const double value : row) evaluation.outputs.push_back(static_cast<float>(value));
  }
  evaluation.loss /= static_cast<double>(labels.size());
  evaluation.accuracy = accuracy(labels, evaluation.predictions);
  return evaluation;
}

std::vector<std::int32_t> select(std::span<const std::int32_t> all, const std::vector<std::int64_t>& rows) {
  std::vector<std::int32_t> chosen;
  chosen.reserve(rows.size());
  for (const std::int64_t row : rows) chosen.push_back(all[static_cast<std::size_t>(row)]);
  return chosen;
}

}  // namespace

CrossValidation::CrossValidation(std::vector<std::int32_t> fold_of_each, std::int64_t classes)
    : fold_of(std::move(fold_of_each)) {
  expect(!fold_of.empty());
  folds.resize(static_cast<std::size_t>(*std::ranges::max_element(fold_of)) + 1);
  for (std::size_t i = 0; i < folds.size(); ++i) {
    const auto fold = static_cast<int>(i);
    folds[i] = {.fold = fold + 1,
                .folds = static_cast<int>(folds.size()),
                .training_images = std::ssize(rows(fold, false)),
                .images = std::ssize(rows(fold, true))};
  }
  evaluation = {.classes = classes,
                .predictions = std::vector<std::int32_t>(fold_of.size()),
                .outputs = std::vector<float>(fold_of.size() * static_cast<std::size_t>(classes))};
}

std::vector<std::int64_t> CrossValidation::rows(int fold, bool held_out) const {
  std::vector<std::int64_t> chosen;
  for (std::size_t i = 0; i < fold_of.size(); ++i)
    if ((fold_of[i] == fold) == held_out) chosen.push_back(static_cast<std::int64_t>(i));
  return chosen;
}

Evaluation CrossValidation::after_epoch(std::int64_t epoch) const {
  Evaluation mean = evaluation;
  mean.loss = epochs.at(static_cast<std::size_t>(epoch)).val_loss;
  mean.accuracy = epochs.at(static_cast<std::size_t>(epoch)).val_accuracy;
  return mean;
}

const FoldRecord& CrossValidation::add_fold(const Evaluation& evaluated, std::span<const std::int32_t> labels,
                                            double elapsed_seconds) {
  const auto next =
      std::ranges::find_if(folds, [](const FoldRecord& one) { return std::isnan(one.seconds); });
  expect(next != folds.end() && std::ssize(labels) == next->images);
  const auto classes = static_cast<std::size_t>(evaluation.classes);
  const std::vector<std::int64_t> images = rows(next->fold - 1, true);
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto at = static_cast<std::size_t>(images[i]);
    evaluation.predictions[at] = evaluated.predictions[i];
    std::copy_n(evaluated.outputs.begin() + static_cast<std::ptrdiff_t>(i * classes), classes,
                evaluation.outputs.begin() + static_cast<std::ptrdiff_t>(at * classes));
    next->correct += evaluated.predictions[i] == labels[i] ? 1 : 0;
  }
  next->loss = evaluated.loss;
  next->seconds = elapsed_seconds;
  const auto share = static_cast<double>(next->images) / static_cast<double>(fold_of.size());
  evaluation.loss += share * next->loss;
  evaluation.accuracy += share * next->accuracy();
  return *next;
}

CrossValidation cross_validate_head(const HeadFeatures& features, std::vector<std::int32_t> fold_of,
                                    const LogisticOptions& options, const OnFold& on_fold,
                                    const std::optional<HeadFeatures>& in_fp32) {
  CrossValidation result(std::move(fold_of), features.classes), exact = result;
  for (std::size_t fold = 0; fold < result.folds.size(); ++fold) {
    const Stopwatch watch;
    const std::vector<std::int64_t> training = result.rows(static_cast<int>(fold), false);
    const std::vector<std::int64_t> held_out = result.rows(static_cast<int>(fold), true);
    const Standardization standardize(features.rows, training);
    const LogisticModel fitted = fit_logistic(standardize(features.rows, training),
                                              select(features.labels, training), features.classes, options);
    const std::vector<std::int32_t> labels = select(features.labels, held_out);
    const auto add_to = [&](CrossValidation& all, const HeadFeatures& given) -> const FoldRecord& {
      return all.add_fold(
          evaluation_of(fitted.logits(standardize(given.rows, held_out)), labels, features.classes), labels,
          watch.elapsed_ms() / 1000);
    };
    const FoldRecord& record = add_to(result, features);
    if (in_fp32) add_to(exact, *in_fp32);
    if (on_fold) on_fold(record);
  }
  result.epochs = {{.val_loss = result.evaluation.loss, .val_accuracy = result.evaluation.accuracy}};
  if (in_fp32) result.fp32_evaluation = std::move(exact.evaluation);
  return result;
}

std::string cross_validation_csv(const CrossValidation& result, const TrainingData& data, LossKind loss) {
  const std::vector<std::int32_t> labels = data.test.labels.to_vector<std::int32_t>();
  const auto classes = static_cast<std::size_t>(result.evaluation.classes);
  const std::vector<float> shares = probabilities(result.evaluation.outputs, result.evaluation.classes, loss);
  const auto name_of_class = [&](std::int32_t label) {
    return csv_field(data.test.classes[static_cast<std::size_t>(label)]);
  };
  std::string text = "path,fold,truth,class,probability\n";
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::int32_t predicted = result.evaluation.predictions[i];
    text += fmt::format("{},{},{},{},{:.6f}\n",
                        data.test_names.empty() ? fmt::format("image {}", i) : csv_field(data.test_names[i]),
                        result.fold_of[i] + 1, name_of_class(labels[i]), name_of_class(predicted),
                        shares[i * classes + static_cast<std::size_t>(predicted)]);
  }
  return text;
}

}  // namespace tandem
