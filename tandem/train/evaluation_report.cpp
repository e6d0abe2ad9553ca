#include "tandem/train/evaluation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "tandem/core/check.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/report/decision_sections.h"
#include "tandem/report/interval.h"
#include "tandem/report/training_page.h"
#include "tandem/text/format_number.h"
#include "tandem/text/utf8.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/fit_decision.h"
#include "tandem/train/photo_data.h"
#include "tandem/train/run_report_images.h"
#include "tandem/train/training_data.h"
#include "tandem/train/views.h"

namespace tandem {
namespace {

constexpr std::size_t max_columns = 20;  // of a confusion matrix on a terminal

std::string percent(double fraction) {
  return std::isfinite(fraction) ? fmt::format("{:.2f} %", 100 * fraction) : "–";
}

Table class_table(const EvaluationReport& report) {
  Table table{.columns = {{"class"},
                          {"images", Align::right},
                          {"predicted", Align::right},
                          {"correct", Align::right},
                          {"precision", Align::right},
                          {"recall", Align::right}},
              .rows = {}};
  for (std::size_t i = 0; i < report.classes.size(); ++i) {
    const ClassMetrics& metrics = report.metrics[i];
    table.rows.push_back({.heading = "",
                          .cells = {{report.classes[i]},
                                    {format_count(metrics.images)},
                                    {format_count(metrics.predicted)},
                                    {format_count(metrics.correct)},
                                    {percent(metrics.precision)},
                                    {percent(metrics.recall)}}});
  }
  return table;
}

Table confusion_table(const EvaluationReport& report) {
  const std::size_t count = report.classes.size();
  Table table{.columns = {{"truth"}}, .rows = {}};
  for (const std::string& name : report.classes) table.columns.push_back({name, Align::right});
  for (std::size_t truth = 0; truth < count; ++truth) {
    TableRow row{.heading = "", .cells = {{report.classes[truth]}}};
    for (std::size_t predicted = 0; predicted < count; ++predicted) {
      const std::int64_t cell = report.confusion[truth * count + predicted];
      const Tone tone = truth == predicted ? Tone::good : cell == 0 ? Tone::faint : Tone::plain;
      row.cells.push_back({fmt::format("{}", cell), tone});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// The number of files that were not read, and a list of them.
std::string skipped_text(std::span<const SkippedSample> skipped) {
  constexpr std::size_t max_lines = 20;
  if (skipped.empty()) return {};
  std::string text = fmt::format("Not read: {}\n", count_skipped(skipped));
  for (const SkippedSample& file : skipped.first(std::min(skipped.size(), max_lines)))
    text += fmt::format("  {}\n", one_line(fmt::format("{}: {}", file.name, file.reason)));
  if (skipped.size() > max_lines)
    text += fmt::format("  … and {} more, listed in the JSON result\n", skipped.size() - max_lines);
  return text;
}

// What the model file says about probabilities, and what curves and probabilities give.
std::string decision_text(const EvaluationReport& report) {
  std::string text;
  if (report.views > 1) text += fmt::format("Views: {}, probabilities are their mean\n", report.views);
  if (const std::optional<BinaryCurves>& curves = report.page.curves; curves && curves->has_both_classes())
    text += fmt::format("ROC AUC: {:.4f}, average precision of '{}': {:.4f}\n", curves->auc,
                        one_line(curves->positive), curves->average_precision);
  if (report.decision.threshold)
    text += fmt::format("Threshold: '{}' from a probability of {:.4g} on\n", one_line(report.classes[1]),
                        *report.decision.threshold);
  if (const std::optional<Calibration>& calibration = report.page.calibration)
    text += fmt::format("Temperature: {:.4g}; expected calibration error {}, {} without it\n",
                        calibration->temperature, percent(calibration->after.ece),
                        percent(calibration->before.ece));
  return text;
}

nlohmann::json finite_or_null(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

// Wilson's 95 % interval.
nlohmann::json interval_json(double share, std::int64_t count) {
  const Interval interval = wilson_interval(share, count);
  return {finite_or_null(interval.low), finite_or_null(interval.high)};
}

// The mean of the probabilities of several views, as an evaluation: its outputs give those probabilities.
Evaluation evaluate_views(Model& model, const ImageSet& test, int views) {
  const ModelInfo& info = model.info;
  const LossKind loss = info.architecture.loss;
  const std::vector<std::int32_t> labels = test.labels.to_vector<std::int32_t>();
  Evaluation evaluation{.classes = std::ssize(info.classes),
                        .predictions = std::vector<std::int32_t>(labels.size()),
                        .outputs = mean_probabilities(*model.module, info, test.images, views)};
  const double mean_loss = reliability(evaluation.outputs, labels, evaluation.classes).loss;
  if (loss != LossKind::mse)
    for (float& value : evaluation.outputs)
      value = std::log(std::max(value, std::numeric_limits<float>::min()));
  const auto classes = static_cast<std::size_t>(evaluation.classes);
  const std::vector<float> shares = probabilities(evaluation.outputs, evaluation.classes, loss);
  for (std::size_t i = 0; i < labels.size(); ++i)
    evaluation.predictions[i] =
        static_cast<std::int32_t>(info.decision.choose(std::span(shares).subspan(i * classes, classes)));
  evaluation.accuracy = accuracy(labels, evaluation.predictions);
  evaluation.loss = mean_loss;
  return evaluation;
}

// Whether the data set is rendered, or in the cache.
bool is_at_hand(const std::string& data) {
  const DatasetRow* const row = datasets().find(data);
  if (row == nullptr) return false;
  if (!row->source) return true;
  try {
    fetch_dataset(data, {.offline = true});
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

EvaluationReport evaluate_model(Model& model, const std::string& data, const EvaluateOptions& options) {
  const ModelInfo& info = model.info;
  const std::string& source = data.empty() ? info.data : data;
  check(!data.empty() || options.own_data || is_at_hand(source),
        "[eval] expected data: what the model file names, '{}', is not read or fetched unasked",
        one_line(source));
  std::vector<SkippedSample> skipped;
  std::vector<std::string> names;
  DataSplit split;
  if (info.expects_photos()) {
    PhotoSet photos = load_test_photos(source, info, data.empty());
    skipped = std::move(photos.bad);
    names = std::move(photos.names);
    split = {.name = source, .train = {}, .test = std::move(photos.images)};
  } else {
    split = load_split(source, options.from, {}, 10);
  }
  const ImageSet& test = split.test;
  check_image_set(test, split.name);
  check(test.images.size(1) == info.height && test.images.size(2) == info.width &&
            test.images.size(3) == info.channels,
        "[eval] expected images of {}x{} with {} channel{}, as the model's, got {} in {}", info.height,
        info.width, info.channels, info.channels == 1 ? "" : "s", image_description(test), split.name);
  check(test.classes.size() == info.classes.size(),
        "[eval] expected {} classes, as the model's, got {} in {}", info.classes.size(), test.classes.size(),
        split.name);
  const LossKind loss = info.architecture.loss;
  const std::vector<std::int32_t> labels = test.labels.to_vector<std::int32_t>();
  Evaluation raw;
  if (options.views == 1) raw = evaluate(*model.module, test, loss, info.input());
  const Evaluation evaluation = options.views == 1 ? apply_decision(raw, labels, info.decision, loss)
                                                   : evaluate_views(model, test, options.views);
  EvaluationReport report{.model = info.architecture.to_string(),
                          .data = split.name,
                          .images = test.count(),
                          .skipped = std::move(skipped),
                          .accuracy = evaluation.accuracy,
                          .loss = evaluation.loss,
                          .top = {},
                          .classes = test.classes,
                          .metrics = {},
                          .confusion = confusion_matrix(labels, evaluation.predictions, evaluation.classes),
                          .decision = info.decision,
                          .views = options.views,
                          .page = {}};
  for (const int k : {2, 3, 5})
    if (k < evaluation.classes) report.top.push_back({k, top_k_accuracy(evaluation.outputs, labels, k)});
  report.metrics = class_metrics(report.confusion);
  TrainingData tested;
  tested.train.photographs = info.expects_photos();
  tested.test = test;
  tested.test_names = std::move(names);
  report.page = {.title = fmt::format("{} on {}", info.architecture.model, split.name),
                 .facts = {{"model", report.model},
                           {"data", source},
                           {"views", fmt::format("{}", options.views)},
                           {"trained by", info.command}},
                 .test_accuracy = report.accuracy,
                 .test_loss = report.loss,
                 .classes = test.classes};
  if (options.pictures)
    add_test_images(report.page, tested, evaluation, loss,
                    {.module = model.module.get(), .input = info.input()});
  add_curves(report.page, tested, evaluation, loss, info.decision);
  if (info.decision.temperature != 1 && options.views == 1)
    report.page.calibration = measure_calibration(raw, labels, info.decision);
  return report;
}

std::string evaluation_text(const EvaluationReport& report, const TextStyle& style) {
  std::string text =
      fmt::format("{} on {} test images of {}\n\nAccuracy: {}\n", report.model, format_count(report.images),
                  report.data, describe_accuracy(report.accuracy, report.images));
  text += skipped_text(report.skipped);
  for (const TopK& top : report.top)
    text += fmt::format("Top-{}: {}\n", top.k, format_accuracy(top.accuracy, report.images));
  text += fmt::format("Loss: {:.4f}\n{}\n{}", report.loss, decision_text(report),
                      format_table(class_table(report), style));
  if (report.classes.size() <= max_columns)
    text += "\nConfusion matrix (rows: truth, columns: prediction):\n" +
            format_table(confusion_table(report), style);
  return text;
}

std::string evaluation_json(const EvaluationReport& report) {
  nlohmann::ordered_json json{{"model", report.model},
                              {"data", report.data},
                              {"images", report.images},
                              {"left_out", report.skipped.size()},
                              {"accuracy", finite_or_null(report.accuracy)},
                              {"accuracy_interval", interval_json(report.accuracy, report.images)},
                              {"loss", finite_or_null(report.loss)}};
  for (const SkippedSample& file : report.skipped)
    json["not_read"].push_back(
        nlohmann::ordered_json{{"path", file.name}, {"kind", name_of(file.kind)}, {"reason", file.reason}});
  for (const TopK& top : report.top) json["top_k"][fmt::format("{}", top.k)] = finite_or_null(top.accuracy);
  const std::size_t count = report.classes.size();
  json["classes"] = nlohmann::json::array();
  json["confusion"] = nlohmann::json::array();
  for (std::size_t i = 0; i < count; ++i) {
    const ClassMetrics& metrics = report.metrics[i];
    json["classes"].push_back(nlohmann::ordered_json{{"name", report.classes[i]},
                                                     {"images", metrics.images},
                                                     {"predicted", metrics.predicted},
                                                     {"right", metrics.correct},
                                                     {"precision", finite_or_null(metrics.precision)},
                                                     {"recall", finite_or_null(metrics.recall)}});
    const auto row = report.confusion.begin() + static_cast<std::ptrdiff_t>(i * count);
    json["confusion"].push_back(std::vector<std::int64_t>(row, row + static_cast<std::ptrdiff_t>(count)));
  }
  if (report.views > 1) json["views"] = report.views;
  if (report.page.curves) json["curves"] = curves_json(*report.page.curves);
  if (report.page.calibration) json["calibration"] = calibration_json(*report.page.calibration);
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string evaluation_page(const EvaluationReport& report) {
  return training_page(report.page);
}

}  // namespace tandem
