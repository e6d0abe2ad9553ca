// The sections of the page; page.cpp writes the shell. What was not measured has no section.
#include "tandem/report/training_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tandem/core/error.h"
#include "tandem/report/class_metrics.h"
#include "tandem/report/html.h"
#include "tandem/report/interval.h"
#include "tandem/report/page.h"
#include "tandem/text/format_number.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr const char* training_style = R"(
.headline{display:flex;flex-wrap:wrap;gap:10px 44px;margin:0 0 24px;align-items:flex-end}
.headline div{line-height:1.2}.headline b{display:block;font-size:26px;font-weight:650;letter-spacing:-.01em}
.headline .first b{font-size:56px;color:var(--accent);letter-spacing:-.03em}.headline span{color:var(--soft);font-size:14px}
.command{display:block;overflow-x:auto;white-space:pre;background:var(--card);border:1px solid var(--line);border-radius:10px;
padding:10px 16px;margin:0 0 22px;font:14px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.warning{border-left:4px solid #c2410c;padding:2px 0 2px 12px;margin:0 0 12px}
.tall{max-height:560px;overflow-y:auto}
.tall thead th{position:sticky;top:0;background:var(--card);z-index:1}.tall thead th:first-child{z-index:2}
tr.best td{font-weight:650}
.confusion{width:auto}.confusion th,.confusion td{padding:0 6px;height:30px;min-width:34px;text-align:center}
.confusion tbody tr:last-child td{padding-bottom:0}
.confusion td,.confusion tbody tr:hover td{background:rgba(var(--hue),var(--s,0))}
.confusion td,.confusion td:first-child{position:static}.confusion td{font-size:13px}
.confusion thead th{vertical-align:bottom}.confusion .long{margin:0 auto}
.confusion th,.confusion thead th{font-size:13px;font-weight:600;color:var(--ink);border:0}
.confusion tbody th{position:sticky;left:0;background:var(--card);text-align:right;padding-left:14px}
.confusion .axis{color:var(--soft);font-weight:400;text-align:left;padding-left:14px}
.confusion .long{writing-mode:vertical-rl;transform:rotate(180deg);height:auto;padding:6px 0;text-align:left}
.confusion{--hue:214,80,78;margin:6px 10px 12px 0}.confusion .right{--hue:47,123,217}.confusion .none{color:var(--soft);opacity:.45}
.confusion.many th,.confusion.many td{height:11px;min-width:11px;width:11px;padding:0;font-size:9.5px;line-height:11px}
.confusion.many tbody th{padding:0 6px 0 14px}.confusion.many .long{padding:4px 0}.confusion.many .axis{font-size:12px;padding:0 14px;height:22px}
.pair{display:flex;flex-wrap:wrap;gap:0 18px;align-items:flex-start}.pair>.scroll{max-width:100%;min-width:0}.pair>.tall{flex:1 1 420px}.pair>.tall td:last-child{white-space:normal}
.mistakes{display:grid;grid-template-columns:repeat(auto-fill,minmax(124px,1fr));gap:14px;margin:0 0 22px}
.mistakes figure{padding:10px}.mistakes img{display:block;width:100%;aspect-ratio:1;object-fit:contain;background:#000;border-radius:5px}
.mistakes img.small{image-rendering:pixelated}
.mistakes figcaption{margin-top:8px;font-size:14px;line-height:1.35;overflow-wrap:anywhere}
.mistakes figcaption span{display:block;color:var(--soft);font-size:13px}
)";

// "97.05 %": two decimals, because models differ in the second one.
std::string percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.2f} %", 100 * share) : "–";
}

std::string decimals(double value, int digits) {
  if (!std::isfinite(value)) return "–";
  return std::abs(value) < 1e6 ? fmt::format("{:.{}f}", value, digits) : fmt::format("{:.3g}", value);
}

std::string rate(double samples_per_second) {
  if (!std::isfinite(samples_per_second) || std::abs(samples_per_second) > 1e15) return "–";
  return format_count(std::llround(samples_per_second));
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "–";
  if (seconds < 60) return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 2 : 1);
  const auto total = static_cast<std::int64_t>(std::llround(seconds));
  if (total < 3600) return fmt::format("{} min {:02} s", total / 60, total % 60);
  return fmt::format("{} h {:02} min", total / 3600, total / 60 % 60);
}

std::string paragraph(const std::string& text) {
  return fmt::format("<p>{}</p>\n", escape_html(text));
}

// ---- the confusion matrix, read

struct ClassFigures : ClassMetrics {
  std::size_t confused_with = 0;  // the most frequent wrong prediction
  std::int64_t confused = 0;
};

struct Confusion {
  std::vector<ClassFigures> classes;
  std::int64_t images = 0, correct = 0;
  double worst_share = 0;  // the largest share of a class predicted as one wrong class
};

Confusion read_confusion(const TrainingReport& report) {
  const std::size_t count = report.classes.size();
  Confusion all;
  for (const ClassMetrics& metrics : class_metrics(report.confusion)) all.classes.push_back({metrics});
  for (std::size_t truth = 0; truth < count; ++truth) {
    ClassFigures& figures = all.classes[truth];
    for (std::size_t predicted = 0; predicted < count; ++predicted) {
      const std::int64_t cell = report.confusion[truth * count + predicted];
      if (truth == predicted || cell <= figures.confused) continue;
      figures.confused = cell;
      figures.confused_with = predicted;
    }
  }
  for (const ClassFigures& figures : all.classes) {
    all.images += figures.images;
    all.correct += figures.correct;
    if (figures.images > 0)
      all.worst_share = std::max(all.worst_share,
                                 static_cast<double>(figures.confused) / static_cast<double>(figures.images));
  }
  return all;
}

std::string confusion_sentence(const TrainingReport& report, const Confusion& all) {
  std::string text =
      "Rows are the true classes, columns the predicted ones. The blue diagonal is correct; the redder "
      "another cell, the larger the share of its row that was predicted as that class.";
  if (all.correct == all.images) return text + " Nothing was confused.";
  const auto worst =
      std::max_element(all.classes.begin(), all.classes.end(),
                       [](const ClassFigures& a, const ClassFigures& b) { return a.confused < b.confused; });
  return text + fmt::format(" The most frequent confusion: {} predicted as {}, {} {}.",
                            report.classes[static_cast<std::size_t>(worst - all.classes.begin())],
                            report.classes[worst->confused_with], format_count(worst->confused),
                            worst->confused == 1 ? "time" : "times");
}

// Beyond 32 classes the counts do not fit: cells show color only, and the count on hover.
std::string confusion_table(const TrainingReport& report, const Confusion& all) {
  const std::vector<std::string>& names = report.classes;
  const bool many = names.size() > 32;
  const bool upright = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return display_width(one_line(name)) > (many ? 1 : 4);
  });
  std::string html = fmt::format(
      "<div class=\"scroll\"><table class=\"confusion{}\">\n<thead><tr><th></th><th class=\"axis\" "
      "colspan=\"{}\">predicted →</th></tr>\n<tr><th></th>",
      many ? " many" : "", names.size());
  for (const std::string& name : names)
    html += fmt::format("<th scope=\"col\"><div{}>{}</div></th>", upright ? " class=\"long\"" : "",
                        escape_html(shorten(one_line(name), 24)));
  html += "</tr></thead>\n<tbody>\n";
  for (std::size_t truth = 0; truth < names.size(); ++truth) {
    html += fmt::format("<tr><th scope=\"row\">{}</th>", escape_html(shorten(one_line(names[truth]), 24)));
    for (std::size_t predicted = 0; predicted < names.size(); ++predicted) {
      const std::int64_t cell = report.confusion[truth * names.size() + predicted];
      const double share = static_cast<double>(cell) /
                           static_cast<double>(std::max<std::int64_t>(all.classes[truth].images, 1));
      // Shades end at one half so that text stays readable; single mistakes must stay visible.
      const bool right = truth == predicted;
      const double shade = right ? 0.5 * share : cell > 0 ? 0.08 + 0.47 * share / all.worst_share : 0;
      const char* kind = right ? " class=\"right\"" : cell == 0 ? " class=\"none\"" : "";
      if (cell == 0 && many)
        html += "<td></td>";
      else if (cell == 0)
        html += fmt::format("<td{}>·</td>", kind);
      else
        html += fmt::format("<td{} style=\"--s:{:.2f}\" title=\"{} predicted as {}: {} ({})\">{}</td>", kind,
                            shade, escape_html(names[truth]), escape_html(names[predicted]), cell,
                            percent(share), many ? std::string() : fmt::format("{}", cell));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string share_cell(double share, int color) {
  std::string bar;
  if (std::isfinite(share))
    bar = fmt::format("<span class=\"share c{}\"><i style=\"width:{:.0f}%\"></i></span>", color,
                      100 * std::clamp(share, 0.0, 1.0));
  return fmt::format("<td class=\"number\">{}{}</td>", percent(share), bar);
}

std::string class_table(const TrainingReport& report, const Confusion& all) {
  std::string html =
      "<div class=\"scroll tall\"><table>\n<thead><tr><th scope=\"col\">class</th><th class=\"number\" "
      "scope=\"col\">images</th><th class=\"number\" scope=\"col\">recall</th><th class=\"number\" "
      "scope=\"col\">precision</th><th scope=\"col\">most often predicted as</th></tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < all.classes.size(); ++i) {
    const ClassFigures& figures = all.classes[i];
    const std::string confused =
        figures.confused == 0 ? "–"
                              : fmt::format("{} ({})", escape_html(report.classes[figures.confused_with]),
                                            format_count(figures.confused));
    html += fmt::format("<tr><td>{}</td><td class=\"number\">{}</td>{}{}<td>{}</td></tr>\n",
                        escape_html(report.classes[i]), format_count(figures.images),
                        share_cell(figures.recall, 1), share_cell(figures.precision, 3), confused);
  }
  return html + "</tbody></table></div>\n";
}

// ---- epochs

template <class Figure>
Series curve(const TrainingReport& report, const std::string& name, int color, Figure figure) {
  Series series{.name = name, .x = {}, .y = {}, .color = color};
  for (const EpochRecord& record : report.epochs) {
    if (!std::isfinite(figure(record))) continue;
    series.x.push_back(record.epoch);
    series.y.push_back(figure(record));
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
  // A constant learning rate needs no curve.
  if (!plots.empty() && plots.back().title == learning_rate.title) {
    const std::vector<double>& y = plots.back().series[0].y;
    if (std::all_of(y.begin(), y.end(), [&](double value) { return value == y.front(); })) plots.pop_back();
  }
  return plots;
}

std::string epoch_table(const TrainingReport& report) {
  std::string html = "<div class=\"scroll tall\"><table>\n<thead><tr>";
  const std::string val = escape_html(report.val_name);
  std::vector<std::string> headers{"epoch", "training loss", "training accuracy", val + " loss",
                                   val + " accuracy"};
  for (const NamedFigure& metric : report.epochs.front().metrics)
    headers.push_back(val + " " + escape_html(metric.name));
  for (const char* const name : {"learning rate", "time", "waited", "samples/s"}) headers.emplace_back(name);
  for (const std::string& header : headers)
    html += fmt::format("<th class=\"number\" scope=\"col\">{}</th>", header);
  html += "</tr></thead>\n<tbody>\n";
  for (const EpochRecord& record : report.epochs) {
    html += record.epoch == report.best_epoch ? "<tr class=\"best\">" : "<tr>";
    std::vector<std::string> cells{fmt::format("{}", record.epoch), decimals(record.train_loss, 4),
                                   percent(record.train_accuracy), decimals(record.val_loss, 4),
                                   percent(record.val_accuracy)};
    for (const NamedFigure& metric : record.metrics) cells.push_back(decimals(metric.value, 4));
    cells.push_back(std::isfinite(record.learning_rate) ? fmt::format("{:.4g}", record.learning_rate) : "–");
    cells.push_back(duration(record.seconds));
    cells.push_back(duration(record.waited_seconds));
    cells.push_back(rate(record.samples_per_second));
    for (const std::string& cell : cells) html += fmt::format("<td class=\"number\">{}</td>", cell);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

// ---- example images

std::string base64(const std::string& bytes) {
  constexpr const char* letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t have = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < have ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i) text += i <= have ? letters[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

// The width in a PNG's header. Small images are shown enlarged, without smoothing.
std::uint32_t png_width(const std::string& png) {
  std::uint32_t width = 0;
  for (std::size_t i = 16; i < 20 && i < png.size(); ++i)
    width = width << 8 | static_cast<unsigned char>(png[i]);
  return width;
}

std::string images_html(const std::vector<ClassifiedImage>& images) {
  std::string html = "<div class=\"mistakes\">\n";
  for (const ClassifiedImage& image : images) {
    const std::string what = image.truth == image.predicted
                                 ? fmt::format("<b>{}</b>", escape_html(image.truth))
                                 : fmt::format("<b>{}</b> predicted as <b>{}</b>", escape_html(image.truth),
                                               escape_html(image.predicted));
    html += fmt::format(
        "<figure><img{} alt=\"{}\" src=\"data:image/png;base64,{}\"/><figcaption>{}<span>{} confidence · "
        "{}</span></figcaption></figure>\n",
        png_width(image.png) <= 96 ? " class=\"small\"" : "", escape_html(image.name), base64(image.png),
        what, percent(image.probability), escape_html(image.name));
  }
  return html + "</div>\n";
}

// ---- header

const EpochRecord* kept_epoch(const TrainingReport& report) {
  const auto found = std::ranges::find(report.epochs, report.best_epoch, &EpochRecord::epoch);
  return found == report.epochs.end() ? nullptr : &*found;
}

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
  if (all.images > 0)
    add(format_count(all.images - all.correct),
        fmt::format("wrong of {} {} images", format_count(all.images), report.test_name));
  if (std::isfinite(report.test_loss)) add(decimals(report.test_loss, 4), report.test_name + " loss");
  if (!report.epochs.empty())
    add(fmt::format("{}", report.epochs.size()), report.epochs.size() == 1 ? "epoch" : "epochs");
  if (std::isfinite(report.total_seconds)) add(duration(report.total_seconds), "training time");
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
  if (report.best_epoch > 0)
    text += fmt::format(" The kept weights are those of epoch {}, in bold in the table{}.", report.best_epoch,
                        report.chosen_on.empty()
                            ? ": the last one"
                            : fmt::format(": the best accuracy on the {} images", report.chosen_on));
  return text;
}

}  // namespace

std::string training_page(const TrainingReport& report) {
  expect(report.confusion.empty() ||
         report.confusion.size() == report.classes.size() * report.classes.size());
  const bool tested = !report.confusion.empty();
  const Confusion all = tested ? read_confusion(report) : Confusion{};
  Page page;
  page.title = report.title;
  page.style = training_style;
  page.lead_html = headline_html(report, all);
  for (const std::string& warning : report.warnings)
    page.lead_html += fmt::format("<p class=\"warning\"><b>Warning:</b> {}.</p>\n", escape_html(warning));
  if (!report.command.empty())
    page.lead_html += fmt::format("<code class=\"command\">{}</code>\n", escape_html(report.command));
  page.facts = report.facts;
  page.provenance = report.provenance;
  if (!report.epochs.empty())
    page.sections.push_back(
        {.title = "Training",
         .body_html = paragraph(curves_sentence(report)) + plots_html(curves(report)) + epoch_table(report)});
  if (tested)
    page.sections.push_back(
        {.title = "Confusion matrix",
         .body_html =
             paragraph(confusion_sentence(report, all)) +
             paragraph(
                 "Recall is the share of a class's images that were predicted as that class; precision is "
                 "the share of the images predicted as that class that belong to it.") +
             "<div class=\"pair\">\n" + confusion_table(report, all) + class_table(report, all) +
             "</div>\n"});
  if (!report.mistakes.empty())
    page.sections.push_back(
        {.title = "Worst mistakes",
         .body_html =
             paragraph("Wrong predictions with the highest probability. The figure is the probability "
                       "of the predicted class.") +
             images_html(report.mistakes)});
  if (!report.most_confident.empty())
    page.sections.push_back({.title = "Most confident correct predictions",
                             .body_html = paragraph("Correct predictions with the highest probability.") +
                                          images_html(report.most_confident)});
  page.footer_html = "<p>Made by Tandem. Every figure was measured in the run that made this file.</p>";
  return html_page(page);
}

}  // namespace tandem
