#include "tandem/report/folds_section.h"

#include <fmt/format.h>

#include "tandem/report/html.h"
#include "tandem/report/pictures.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

Plot accuracy_plot(const TrainingReport& report) {
  Plot plot{.title = "Accuracy of each fold", .kind = PlotKind::bars, .y_unit = Unit::share};
  Series series{.name = "", .x = {}, .y = {}, .color = 2};
  for (const FoldRecord& record : report.folds) {
    plot.categories.push_back(fmt::format("fold {}", record.fold));
    series.y.push_back(record.accuracy());
  }
  plot.series = {series};
  return plot;
}

std::string fold_table(const TrainingReport& report) {
  std::string html = "<table>\n<thead><tr>";
  for (const char* const header : {"fold", "trained on", "predicted", "correct", "accuracy", "loss", "time"})
    html += fmt::format("<th class=\"number\" scope=\"col\">{}</th>", header);
  html += "</tr></thead>\n<tbody>\n";
  for (const FoldRecord& record : report.folds) {
    html += "<tr>";
    for (const std::string& cell :
         {fmt::format("{}", record.fold), format_count(record.training_images), format_count(record.images),
          format_count(record.correct), percent(record.accuracy()), format_decimals(record.loss, 4),
          format_duration(record.seconds)})
      html += fmt::format("<td class=\"number\">{}</td>", cell);
    html += "</tr>\n";
  }
  return scroll_box("Folds", html + "</tbody></table>", report.folds.size() > 12 ? "tall" : "");
}

}  // namespace

PageSection folds_section(const TrainingReport& report) {
  const std::string text = fmt::format(
      "The images were divided into {0} folds with the same share of each class. For each fold a model was "
      "trained on the others, and predicted its images: every image was predicted once, by a model that had "
      "not seen it. The confusion matrix, the mistakes and the loss on this page are of these predictions. "
      "The "
      "kept model was then trained on all images with the same options. Its own accuracy is not measured: "
      "that of the folds, whose models had {1:.0f} % of the images, estimates it. The deviation says how far "
      "a "
      "figure of one such split can be from another by chance.",
      report.folds.size(),
      100.0 * static_cast<double>(report.folds.size() - 1) / static_cast<double>(report.folds.size()));
  return {.title = "Cross-validation",
          .body_html = fmt::format("<p>{}</p>\n", escape_html(text)) + plots_html({accuracy_plot(report)}) +
                       fold_table(report)};
}

}  // namespace tandem
