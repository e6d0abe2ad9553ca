#include "tandem/report/decision_sections.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tandem/report/class_metrics.h"
#include "tandem/report/html.h"
#include "tandem/report/pictures.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

std::string paragraph(const std::string& text) {
  return fmt::format("<p>{}</p>\n", escape_html(text));
}

// The points without those on a straight line between their neighbors, and of many an even choice.
std::vector<ThresholdPoint> shown_points(const BinaryCurves& curves) {
  constexpr std::size_t max_points = 120;
  const auto is_on_line = [](const ThresholdPoint& a, const ThresholdPoint& b, const ThresholdPoint& c) {
    return (a.true_positive_rate == b.true_positive_rate && b.true_positive_rate == c.true_positive_rate) ||
           (a.false_positive_rate == b.false_positive_rate && b.false_positive_rate == c.false_positive_rate);
  };
  std::vector<ThresholdPoint> kept, shown;
  for (std::size_t i = 0; i < curves.points.size(); ++i)
    if (i == 0 || i + 1 == curves.points.size() ||
        !is_on_line(curves.points[i - 1], curves.points[i], curves.points[i + 1]))
      kept.push_back(curves.points[i]);
  const std::size_t step = (kept.size() + max_points - 1) / max_points;
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (i % step == 0 || i + 1 == kept.size()) shown.push_back(kept[i]);
  return shown;
}

std::vector<Plot> curve_plots(const BinaryCurves& curves) {
  Plot roc{.title = fmt::format("ROC curve: area {:.4f}", curves.auc),
           .x_label = "false-positive rate",
           .y_label = "true-positive rate"};
  Plot precision{
      .title = fmt::format("Precision and recall: average precision {:.4f}", curves.average_precision),
      .x_label = "recall",
      .y_label = "precision"};
  Series of_rates{.name = "model", .x = {}, .y = {}, .color = 1};
  Series of_precision = of_rates;
  for (const ThresholdPoint& point : shown_points(curves)) {
    of_rates.x.push_back(point.false_positive_rate);
    of_rates.y.push_back(point.true_positive_rate);
    of_precision.x.push_back(point.true_positive_rate);
    of_precision.y.push_back(point.precision);
  }
  const double share = share_of(curves.positives, curves.positives + curves.negatives);
  roc.series = {of_rates, {.name = "chance", .x = {0, 1}, .y = {0, 1}, .dashed = true, .color = 4}};
  precision.series = {of_precision,
                      {.name = "chance", .x = {0, 1}, .y = {share, share}, .dashed = true, .color = 4}};
  const double threshold = std::isfinite(curves.threshold) ? curves.threshold : 0.5;
  const ThresholdPoint& used = point_at(curves, threshold);
  const std::string name = fmt::format("threshold {:.3g}", threshold);
  roc.series.push_back(
      {.name = name, .x = {used.false_positive_rate}, .y = {used.true_positive_rate}, .color = 2});
  precision.series.push_back(
      {.name = name, .x = {used.true_positive_rate}, .y = {used.precision}, .color = 2});
  return {roc, precision};
}

Series bin_series(const Reliability& measured, const std::string& name, int color) {
  Series series{.name = name, .x = {}, .y = {}, .color = color};
  for (const ReliabilityBin& bin : measured.bins) {
    if (bin.images == 0) continue;
    series.x.push_back(bin.confidence);
    series.y.push_back(bin.accuracy);
  }
  return series;
}

Json bins_json(const Reliability& measured) {
  Json bins = Json::array();
  for (const ReliabilityBin& bin : measured.bins)
    bins.push_back({{"low", bin.low},
                    {"high", bin.high},
                    {"images", bin.images},
                    {"confidence", number(bin.confidence)},
                    {"accuracy", number(bin.accuracy)}});
  return bins;
}

}  // namespace

PageSection curves_section(const BinaryCurves& curves, const std::string& test_name) {
  const bool is_set = std::isfinite(curves.threshold);
  const ThresholdPoint& used = point_at(curves, is_set ? curves.threshold : 0.5);
  const std::string text = fmt::format(
      "The model gives each image a probability of “{0}”. An image counts as “{0}” from a threshold on{1}: "
      "on the {2} "
      "images this finds {3} of {4} images of “{0}”, and counts {5} of {6} images of “{7}” wrongly as such. "
      "The "
      "curves show all thresholds. The area under the ROC curve is the probability that an image of “{0}” "
      "has a higher score than one of “{7}”. {8}",
      curves.positive,
      is_set ? fmt::format(", {:.4g}, which the model file has", curves.threshold) : ", 0.5 if none is set",
      test_name, percent(used.true_positive_rate), format_count(curves.positives),
      percent(used.false_positive_rate), format_count(curves.negatives), curves.negative, curves.note);
  return {.title = "Thresholds", .body_html = paragraph(text) + plots_html(curve_plots(curves))};
}

PageSection calibration_section(const Calibration& calibration, const std::string& test_name) {
  std::string text = fmt::format(
      "A probability of 80 % should be right in 80 % of the cases. The logits are divided by a temperature "
      "of {:.4g}",
      calibration.temperature);
  if (calibration.fitted_count > 0)
    text += fmt::format(", which was fitted to {} {} images", format_count(calibration.fitted_count),
                        calibration.fitted_on);
  text += fmt::format(
      ": the expected calibration error, in {} bins, was {} and is {}; the loss was {:.4f} and is {:.4f}. "
      "The "
      "most probable class is the same. ",
      reliability_bins, percent(calibration.before.ece), percent(calibration.after.ece),
      calibration.before.loss, calibration.after.loss);
  if (!calibration.same_images)
    text += fmt::format(
        "These figures are measured on {} {} images. If the temperature was fitted to them, expect a larger "
        "error "
        "on new ones.",
        format_count(calibration.images), test_name);
  else if (*calibration.same_images)
    text +=
        "These figures are measured on the images that the temperature was fitted to: expect a larger error "
        "on "
        "new ones.";
  else
    text +=
        fmt::format("These figures are measured on {} {} images, which the temperature was not fitted to.",
                    format_count(calibration.images), test_name);
  Plot plot{.title = "Reliability",
            .x_label = "mean probability of the predicted class",
            .y_label = "accuracy",
            .y_unit = Unit::share};
  plot.series = {bin_series(calibration.before, "before", 4),
                 bin_series(calibration.after, "calibrated", 1),
                 {.name = "perfect", .x = {0, 1}, .y = {0, 1}, .dashed = true, .color = 2}};
  Plot counts{
      .title = "Images by probability", .y_label = "images", .kind = PlotKind::bars, .y_unit = Unit::count};
  Series before{.name = "before", .x = {}, .y = {}, .color = 4};
  Series after{.name = "calibrated", .x = {}, .y = {}, .color = 1};
  for (std::size_t i = 0; i < calibration.after.bins.size(); ++i) {
    const ReliabilityBin& bin = calibration.after.bins[i];
    if (bin.images == 0 && calibration.before.bins[i].images == 0) continue;
    counts.categories.push_back(fmt::format("{:.0f} to {:.0f} %", 100 * bin.low, 100 * bin.high));
    before.y.push_back(static_cast<double>(calibration.before.bins[i].images));
    after.y.push_back(static_cast<double>(bin.images));
  }
  counts.series = {before, after};
  return {.title = "Calibration", .body_html = paragraph(text) + plots_html({plot, counts})};
}

Json curves_json(const BinaryCurves& curves) {
  Json points = Json::array();
  for (const ThresholdPoint& point : curves.points)
    points.push_back({number(point.threshold), number(point.false_positive_rate),
                      number(point.true_positive_rate), number(point.precision)});
  return {{"positive", curves.positive},
          {"negative", curves.negative},
          {"positives", curves.positives},
          {"negatives", curves.negatives},
          {"auc", number(curves.auc)},
          {"average_precision", number(curves.average_precision)},
          {"threshold", number(curves.threshold)},
          {"points", points}};
}

Json calibration_json(const Calibration& calibration) {
  return {{"temperature", calibration.temperature},
          {"fitted_on", calibration.fitted_on},
          {"same_images", calibration.same_images ? Json(*calibration.same_images) : Json()},
          {"images", calibration.images},
          {"ece_before", number(calibration.before.ece)},
          {"ece", number(calibration.after.ece)},
          {"loss_before", number(calibration.before.loss)},
          {"loss", number(calibration.after.loss)},
          {"bins_before", bins_json(calibration.before)},
          {"bins", bins_json(calibration.after)}};
}

}  // namespace tandem
