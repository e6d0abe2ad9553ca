// The sections of the page; page.cpp writes the shell. What was not measured has no section.
#include "tandem/report/training_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tandem/core/error.h"
#include "tandem/report/confusion_section.h"
#include "tandem/report/curve.h"
#include "tandem/report/decision_sections.h"
#include "tandem/report/explain_page.h"
#include "tandem/report/folds_section.h"
#include "tandem/report/html.h"
#include "tandem/report/interval.h"
#include "tandem/report/page.h"
#include "tandem/report/pictures.h"
#include "tandem/report/run_page.h"
#include "tandem/report/step_record.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

constexpr const char* training_style = R"(
.headline{display:flex;flex-wrap:wrap;gap:10px 44px;margin:0 0 24px;align-items:flex-end}
.headline div{line-height:1.2}.headline b{display:block;font-size:26px;font-weight:650;letter-spacing:-.01em}
.headline .first b{font-size:56px;color:var(--accent);letter-spacing:-.03em}.headline span{color:var(--soft);font-size:14px}
.command{display:block;white-space:pre-wrap;overflow-wrap:anywhere;background:var(--card);border:1px solid var(--line);border-radius:10px;
padding:10px 16px;margin:0 0 22px;font:14px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
tr.best td{font-weight:650}.options th{font-weight:500}.on-paper{display:none}
@media print{.headline{gap:2px 24px;margin-bottom:6px}.headline b{font-size:13pt}.headline .first b{font-size:22pt}.headline span{font-size:7pt}
.command{padding:2px 6px;margin-bottom:5px;font-size:7pt;border-radius:4px}.warning{margin-bottom:4px}
.tall table{font-size:5.9pt}.tall th,.tall td{padding-left:2px;padding-right:2px}.tall thead th{white-space:normal;font-size:5.6pt}tr.left-out,.on-screen{display:none}.on-paper{display:block}}
)";

// Of more epochs than these the table shows one of several: of a long training the page, which every save
// makes anew, stays as small as that of a short one.
constexpr std::size_t max_shown_epochs = 500;
constexpr std::size_t max_printed_epochs = 40;  // on paper

std::string paragraph(const std::string& text) {
  return fmt::format("<p>{}</p>\n", escape_html(text));
}

// ---- epochs

template <class Figure>
Series curve(const TrainingReport& report, const std::string& name, int color, Figure figure) {
  Curve shown(max_page_buckets);
  for (const EpochRecord& record : report.epochs) shown.add(record.epoch, figure(record));
  Series series{.name = name, .x = {}, .y = {}, .color = color};
  std::vector<CurvePoint> points = shown.points();
  if (!points.empty() && points.back().x < shown.last()->x) points.push_back(*shown.last());
  for (const CurvePoint& point : points) {
    series.x.push_back(point.x);
    series.y.push_back(point.y);
  }
  return series;
}

std::vector<Plot> curves(const TrainingReport& report) {
  Plot loss{.title = "Loss", .x_label = "epoch"};
  loss.series = {curve(report, "training", 1, [](const EpochRecord& r) { return r.train_loss; }),
                 curve(report, report.val_name, 2, [](const EpochRecord& r) { return r.val_loss; })};
  Plot accuracy{.title = "Accuracy", .x_label = "epoch", .y_unit = Unit::share};
  accuracy.series = {curve(report, "training", 1, [](const EpochRecord& r) { return r.train_accuracy; }),
                     curve(report, report.val_name, 2, [](const EpochRecord& r) { return r.val_accuracy; })};
  Plot learning_rate{.title = "Learning rate", .x_label = "epoch"};
  learning_rate.series = {curve(report, "", 4, [](const EpochRecord& r) { return r.learning_rate; })};
  std::vector<Plot> plots;
  for (Plot& plot : std::vector{loss, accuracy, learning_rate}) {
    std::erase_if(plot.series, [](const Series& series) { return series.y.empty(); });
    if (!plot.series.empty()) plots.push_back(std::move(plot));
  }
  if (!plots.empty() && plots.back().title == learning_rate.title && !has_several_learning_rates(report))
    plots.pop_back();
  return plots;
}

// The table has the first epoch, the last, the kept one and one of as many as keep it below `max_rows`.
std::size_t row_step(const TrainingReport& report, std::size_t max_rows) {
  return std::max<std::size_t>((report.epochs.size() + max_rows - 1) / max_rows, 1);
}

bool has_exchange(const TrainingReport& report) {
  return std::ranges::any_of(report.epochs,
                             [](const EpochRecord& record) { return record.exchange_seconds > 0; });
}

std::string epoch_table(const TrainingReport& report) {
  std::string html = "<table>\n<thead><tr>";
  const std::string val = escape_html(report.val_name);
  std::vector<std::string> headers{"epoch", "training loss", "training accuracy", val + " loss",
                                   val + " accuracy"};
  for (const NamedFigure& metric : report.epochs.front().metrics)
    headers.push_back(val + " " + escape_html(metric.name));
  for (const char* const name : {"learning rate", "time", "waited"}) headers.emplace_back(name);
  if (has_exchange(report)) headers.emplace_back("exchange");
  headers.emplace_back("samples/s");
  for (const std::string& header : headers)
    html += fmt::format("<th class=\"number\" scope=\"col\">{}</th>", header);
  html += "</tr></thead>\n<tbody>\n";
  const std::size_t step = row_step(report, max_shown_epochs);
  const std::size_t printed_step = row_step(report, max_printed_epochs);
  const bool exchange = has_exchange(report);
  for (std::size_t i = 0; i < report.epochs.size(); ++i) {
    const EpochRecord& record = report.epochs[i];
    const bool best = record.epoch == report.best_epoch;
    const bool printed = i == 0 || (i + 1) % printed_step == 0 || i + 1 == report.epochs.size();
    if (!best && !printed && (i + 1) % step != 0) continue;
    html += best ? "<tr class=\"best\">" : printed ? "<tr>" : "<tr class=\"left-out\">";
    std::vector<std::string> cells{fmt::format("{}", record.epoch), format_decimals(record.train_loss, 4),
                                   percent(record.train_accuracy), format_decimals(record.val_loss, 4),
                                   percent(record.val_accuracy)};
    for (const NamedFigure& metric : record.metrics) cells.push_back(format_decimals(metric.value, 4));
    cells.push_back(std::isfinite(record.learning_rate) ? fmt::format("{:.4g}", record.learning_rate) : "–");
    cells.push_back(format_duration(record.seconds));
    cells.push_back(format_duration(record.waited_seconds));
    if (exchange) cells.push_back(format_duration(record.exchange_seconds));
    cells.push_back(format_rounded(record.samples_per_second));
    for (const std::string& cell : cells) html += fmt::format("<td class=\"number\">{}</td>", cell);
    html += "</tr>\n";
  }
  html = scroll_box("Epochs", html + "</tbody></table>", "tall");
  if (step > 1)
    html += fmt::format("<p class=\"on-screen\">One of {} epochs is shown; log.csv has all.</p>\n", step);
  if (printed_step > 1)
    html += fmt::format("<p class=\"on-paper\">One of {} epochs is printed; log.csv has all.</p>\n",
                        printed_step);
  return html;
}

// ---- header

std::string interval_text(double share, std::int64_t count) {
  return count > 0 ? fmt::format(", 95 % interval {}", format_interval(wilson_interval(share, count))) : "";
}

std::string headline_html(const TrainingReport& report, const Confusion& all) {
  std::string html;
  const auto add = [&](const std::string& figure, const std::string& what) {
    html += fmt::format("<div{}><b>{}</b><span>{}</span></div>\n", html.empty() ? " class=\"first\"" : "",
                        escape_html(figure), escape_html(what));
  };
  if (std::isfinite(report.test_accuracy))
    add(percent(report.test_accuracy),
        fmt::format("{} accuracy{}", report.test_name, interval_text(report.test_accuracy, all.images)));
  else if (const EpochRecord* const kept = kept_epoch(report))
    add(percent(kept->val_accuracy),
        fmt::format("{} accuracy after epoch {}, not finished{}", report.val_name, kept->epoch,
                    interval_text(kept->val_accuracy, kept->val_count)));
  if (!report.folds.empty())
    add(format_summary(summarize(report.folds)),
        fmt::format("mean ± standard deviation of {} folds", report.folds.size()));
  if (std::isfinite(report.fp32_accuracy))
    add(percent(report.fp32_accuracy),
        fmt::format("with features in fp32{}", interval_text(report.fp32_accuracy, all.images)));
  if (all.images > 0)
    add(format_count(all.images - all.correct),
        fmt::format("wrong of {} {} images", format_count(all.images), report.test_name));
  if (std::isfinite(report.test_loss)) add(format_decimals(report.test_loss, 4), report.test_name + " loss");
  if (!report.epochs.empty())
    add(fmt::format("{}", report.epochs.size()), report.epochs.size() == 1 ? "epoch" : "epochs");
  if (std::isfinite(report.total_seconds)) add(format_duration(report.total_seconds), "training time");
  return html.empty() ? html : fmt::format("<div class=\"headline\">\n{}</div>\n", html);
}

std::string curves_sentence(const TrainingReport& report) {
  std::string text = "Training minimizes the loss; accuracy is the share of images classified correctly.";
  const bool compared =
      std::any_of(report.epochs.begin(), report.epochs.end(), [](const EpochRecord& record) {
        return std::isfinite(record.val_loss) || std::isfinite(record.val_accuracy);
      });
  if (compared && report.epochs.size() > 1)
    text += fmt::format(" Where the {} curve departs from the training curve, the model begins to overfit.",
                        report.val_name);
  if (report.best_epoch > 0 && report.epochs.size() > 1)
    text += fmt::format(" The kept weights are those of epoch {}, in bold in the table{}.", report.best_epoch,
                        report.chosen_on.empty()
                            ? ": the last one"
                            : fmt::format(": the best accuracy on the {} images", report.chosen_on));
  text += " “Waited” is the time in which training waited for images";
  if (has_exchange(report))
    text += ", “exchange” that between the ranks, waiting for each other included, on average over them";
  return text + ".";
}

PageSection range_section(const RangeTest& test) {
  Plot plot{.title = "Loss while the learning rate rises",
            .x_label = "learning rate",
            .y_label = "loss",
            .log_x = true};
  plot.series = {{.name = "smoothed loss", .x = test.rates, .y = test.losses, .color = 1},
                 {.name = fmt::format("chosen: {:.3g}", test.chosen),
                  .x = {test.chosen, test.chosen},
                  .y = {*std::ranges::min_element(test.losses), *std::ranges::max_element(test.losses)},
                  .dashed = true,
                  .color = 2}};
  return {
      .title = "Range test",
      .body_html = paragraph(fmt::format("Before training, a copy of the model was trained for a few batches "
                                         "with each of {} learning rates, which rise until the loss "
                                         "diverges. The run has a learning rate of {:.3g}: a sixth of that "
                                         "with the lowest loss.",
                                         test.rates.size(), test.chosen)) +
                   plots_html({plot})};
}

PageSection batch_section(const TrainingReport& report) {
  return {
      .title = "What the network saw",
      .body_html = paragraph("The first training images of the first epoch, augmented, with their "
                             "classes. " +
                             report.batch_note) +
                   fmt::format("<img class=\"sheet\" alt=\"The first training images, each with its class "
                               "below\" src=\"data:image/jpeg;base64,{}\"/>\n",
                               base64(report.batch_sheet))};
}

std::string options_html(const TrainingReport& report) {
  if (report.options.empty()) return {};
  std::string rows;
  for (const Fact& option : report.options)
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape_html(option.name),
                        escape_html(option.value));
  return "<details class=\"note\"><summary>All options</summary>\n" +
         scroll_box("Options", fmt::format("<table class=\"options\">\n<tbody>\n{}</tbody></table>", rows)) +
         "</details>\n";
}

}  // namespace

std::string training_page(const TrainingReport& report) {
  expect(report.confusion.empty() ||
         report.confusion.size() == report.classes.size() * report.classes.size());
  const bool tested = !report.confusion.empty();
  const Confusion all = tested ? read_confusion(report.confusion) : Confusion{};
  Page page;
  page.title = report.title;
  page.style = std::string(embedded_run_style) + training_style + images_style();
  if (!report.epochs.empty()) {
    page.data = run_data(report);
    page.script = report_script();
  }
  const bool explained = !report.mistakes.empty() && !report.mistakes.front().map.empty();
  if (explained) page.style += heat_legend_style();
  if (tested) page.style += confusion_style(report);
  page.lead_html = headline_html(report, all);
  for (const std::string& warning : report.warnings)
    page.lead_html += fmt::format("<p class=\"warning\"><b>Warning:</b> {}.</p>\n", escape_html(warning));
  if (!report.command.empty())
    page.lead_html += fmt::format("<code class=\"command\">{}</code>\n", escape_html(report.command));
  page.facts = report.facts;
  page.provenance = report.provenance;
  if (!report.folds.empty()) page.sections.push_back(folds_section(report));
  if (!report.epochs.empty())
    page.sections.push_back({.title = "Training",
                             .body_html = paragraph(curves_sentence(report)) +
                                          curves_html(plots_html(curves(report))) + epoch_table(report)});
  if (report.range_test && !report.range_test->losses.empty())
    page.sections.push_back(range_section(*report.range_test));
  if (!report.batch_sheet.empty()) page.sections.push_back(batch_section(report));
  if (!report.timeline.empty() && !report.epochs.empty())
    page.sections.push_back({.title = "Timeline", .body_html = timeline_html()});
  if (tested) page.sections.push_back(confusion_section(report, all));
  if (report.curves && report.curves->has_both_classes())
    page.sections.push_back(curves_section(*report.curves, report.test_name));
  if (report.calibration) page.sections.push_back(calibration_section(*report.calibration, report.test_name));
  if (!report.mistakes.empty())
    page.sections.push_back(
        {.title = "Worst mistakes",
         .body_html =
             paragraph("Wrong predictions with the highest probability. The figure is the probability "
                       "of the predicted class.") +
             (explained ? heat_legend_html(false) : "") + images_html(report.mistakes)});
  if (!report.most_confident.empty())
    page.sections.push_back({.title = "Most confident correct predictions",
                             .body_html = paragraph("Correct predictions with the highest probability.") +
                                          images_html(report.most_confident)});
  page.footer_html = options_html(report) +
                     "<p>Made by Tandem. Every figure was measured in the run that made this file.</p>";
  return html_page(page);
}

}  // namespace tandem
