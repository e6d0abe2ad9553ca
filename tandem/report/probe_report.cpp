#include "tandem/report/probe_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tandem/text/format_number.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// NaN of one value.
double deviation(const std::vector<double>& values) {
  if (values.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  const double center = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - center) * (value - center);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

std::string score_text(const ProbeScore& score) {
  const double spread = deviation(score.accuracies);
  return fmt::format("{:.1f}{} %", 100 * mean(score.accuracies),
                     std::isfinite(spread) ? fmt::format(" ± {:.1f}", 100 * spread) : "");
}

std::string difference_text(const ProbeScore& score) {
  if (!score.difference) return "–";
  const auto& [center, interval] = *score.difference;
  return fmt::format("{:+.1f}{}", 100 * center,
                     std::isfinite(interval.low)
                         ? fmt::format(" ({:+.1f} to {:+.1f})", 100 * interval.low, 100 * interval.high)
                         : "");
}

// One row per model below a heading for each number of labeled images; from `first` on.
Table score_table(const ProbeReport& report, std::size_t first, std::string (*text_of)(const ProbeScore&)) {
  Table table{.columns = {{"model"}, {"linear probe", Align::right}, {"k-nearest neighbors", Align::right}},
              .rows = {}};
  for (std::size_t i = 0; i < report.models[0].results.size(); ++i) {
    const std::int64_t per_class = report.models[0].results[i].per_class;
    table.rows.push_back({.heading = fmt::format("{} labeled image{} per class", format_count(per_class),
                                                 per_class == 1 ? "" : "s"),
                          .cells = {}});
    for (std::size_t m = first; m < report.models.size(); ++m) {
      const ProbeResult& result = report.models[m].results[i];
      table.rows.push_back(
          {.heading = "",
           .cells = {
               {one_line(report.models[m].name)}, {text_of(result.linear)}, {text_of(result.nearest)}}});
    }
  }
  return table;
}

Table model_table(const ProbeReport& report) {
  Table table{.columns = {{"model"}, {"weights"}, {"images"}, {"features", Align::right}}, .rows = {}};
  for (const ProbedModel& model : report.models)
    table.rows.push_back({.heading = "",
                          .cells = {{one_line(model.name)},
                                    {one_line(fmt::format("{}, {}", model.architecture, model.weights))},
                                    {model.input},
                                    {format_count(model.features)}}});
  return table;
}

Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json score_json(const ProbeScore& score) {
  Json json{{"accuracy", mean(score.accuracies)},
            {"deviation", finite_or_null(deviation(score.accuracies))},
            {"accuracies", score.accuracies}};
  if (score.difference)
    json["difference"] = Json{{"mean", score.difference->mean},
                              {"interval", Json::array({finite_or_null(score.difference->interval.low),
                                                        finite_or_null(score.difference->interval.high)})}};
  return json;
}

}  // namespace

std::string probe_text(const ProbeReport& report, const TextStyle& style) {
  std::string text =
      fmt::format("Features on {} {} images of {}, {} classes\n", format_count(report.test_images),
                  report.tested_on, one_line(report.data), report.classes);
  text += fmt::format("Chance: {:.1f} %; always the most frequent class: {:.1f} %\n",
                      100 / static_cast<double>(report.classes), 100 * report.majority_share);
  constexpr std::size_t max_lines = 5;
  const std::size_t shown = std::min(report.not_read.size(), max_lines);
  for (std::size_t i = 0; i < shown; ++i) text += fmt::format("Not read: {}\n", one_line(report.not_read[i]));
  if (shown < report.not_read.size())
    text += fmt::format("… and {} more, listed in the JSON result\n", report.not_read.size() - shown);
  text += "\n";
  text += format_table(model_table(report), style);
  text += report.draws == 1
              ? "\nAccuracy with one choice of labeled images\n"
              : fmt::format("\nAccuracy, mean ± standard deviation of {} choices of labeled images\n",
                            report.draws);
  text += format_table(score_table(report, 0, score_text), style);
  if (report.models.size() > 1)
    text += fmt::format("\nDifference to {} on the same images, in points{}\n",
                        one_line(report.models[0].name), report.draws == 1 ? "" : " (95 % interval)") +
            format_table(score_table(report, 1, difference_text), style);
  return text;
}

std::string probe_json(const ProbeReport& report) {
  Json json{{"data", report.data},
            {"tested_on", report.tested_on},
            {"images", report.test_images},
            {"classes", report.classes},
            {"chance", 1 / static_cast<double>(report.classes)},
            {"majority_share", report.majority_share},
            {"draws", report.draws},
            {"seed", report.seed},
            {"penalty", report.penalty},
            {"not_read", report.not_read},
            {"models", Json::array()}};
  for (const ProbedModel& model : report.models) {
    Json entry{{"model", model.name},  {"architecture", model.architecture}, {"weights", model.weights},
               {"input", model.input}, {"features", model.features},         {"results", Json::array()}};
    for (const ProbeResult& result : model.results)
      entry["results"].push_back(Json{{"per_class", result.per_class},
                                      {"linear_probe", score_json(result.linear)},
                                      {"nearest_neighbors", score_json(result.nearest)}});
    json["models"].push_back(std::move(entry));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tandem
