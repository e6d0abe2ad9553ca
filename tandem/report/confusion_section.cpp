#include "tandem/report/confusion_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tandem/report/html.h"
#include "tandem/report/pictures.h"
#include "tandem/text/format_number.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr const char* matrix_style = R"(
.matrix{container-type:inline-size}.hint{display:none;margin:0 0 8px;font-size:14px;color:var(--soft)}.hint b{color:var(--accent)}
.confusion{table-layout:fixed;width:calc(var(--names) + var(--classes)*var(--cell));margin:6px 10px 12px 0;--hue:214,80,78}
.confusion col.names{width:var(--names)}.confusion .right{--hue:47,123,217}.confusion .none{color:var(--soft);opacity:.45}
.confusion th,.confusion td{padding:0;height:30px;text-align:center;font-size:13px}.confusion tbody tr:last-child td{padding-bottom:0}
.confusion td,.confusion tbody tr:hover td{background:rgba(var(--hue),var(--s,0))}.confusion td:first-child{position:static}
.confusion th,.confusion thead th{font-weight:600;color:var(--ink);border:0;overflow:hidden;text-overflow:ellipsis}
.confusion thead th{vertical-align:bottom}.confusion tbody th{position:sticky;left:0;background:var(--card);text-align:right;padding:0 8px}
.confusion .axis,.confusion thead .axis{color:var(--soft);font-weight:400;text-align:left;padding:0 8px;overflow:visible;background:none}
.confusion thead td.axis{vertical-align:bottom;text-align:right;padding-bottom:4px;white-space:normal;line-height:1.2;
position:sticky;left:0;z-index:1;background:var(--card)}
.confusion .long{writing-mode:vertical-rl;transform:rotate(180deg);margin:0 auto;padding:6px 0;text-align:left}
.confusion td a{display:block;line-height:30px;color:inherit;text-decoration:none;scroll-margin:40vh 120px}
.confusion td a:hover,.confusion td a:focus-visible,.confusion td a:target{outline:2px solid var(--accent);outline-offset:-2px}
@container (max-width:560px){.matrix .confusion{--names:var(--narrow)}.confusion tbody th{white-space:normal;overflow-wrap:anywhere;font-size:12px;line-height:1.1;padding:2px 6px}}
.pair{display:flex;flex-wrap:wrap;gap:0 18px;align-items:flex-start}.pair>.scroll{max-width:100%;min-width:0}
.pair>.tall td:last-child,.pair>.tall th:last-child{white-space:normal;min-width:9em}
.cell{display:none}
.cell:target{display:block;position:fixed;z-index:5;left:0;right:0;bottom:0;max-height:50vh;overflow-y:auto;background:var(--paper);
border-top:3px solid var(--accent);box-shadow:0 -6px 24px rgba(0,0,0,.3);padding:12px max(24px,calc(50vw - 566px)) 0;outline:none}
.cell p{max-width:none;margin:0 0 10px}.cell .close{float:right;margin-left:20px}
.thumbs img{width:48px;height:48px;object-fit:contain;background:#000;border-radius:4px;margin:1px 4px 1px 0;vertical-align:middle}
.thumbs span{color:var(--soft);font-size:13px}
@media screen and (max-width:600px){.tall .share{display:none}.confusions thead{display:none}.confusions tbody{display:block;padding:6px 0}
.confusions tr{display:grid;grid-template-columns:1fr 1fr max-content max-content;padding:4px 0}.confusions td{white-space:normal;padding:2px 6px}
.confusions .thumbs{grid-column:1/-1}.confusions td:nth-child(2)::before{content:"→ ";color:var(--soft)}}
@media print{.cell,.cell:target,.hint{display:none!important}.matrix{container-type:normal}.pair{display:block}.matrix.full .pair>:first-child{column-span:all}
.confusion{margin:2px 0 4px;break-inside:avoid}.confusion th,.confusion td{height:12px;font-size:6pt;line-height:1}.confusion td a{line-height:12px}
.confusion tbody th,.confusion thead td.axis{position:static;padding:0 4px}.thumbs img{width:20px;height:20px;margin:0 1px 0 0;border-radius:1px}.thumbs span{font-size:5.5pt}}
)";

std::string class_name(const TrainingReport& report, std::size_t index) {
  return escape_html(shorten(one_line(report.classes[index]), 24));
}

std::string pair_name(const TrainingReport& report, std::size_t truth, std::size_t predicted,
                      const char* mark = "") {
  const std::string end = *mark == '\0' ? "" : fmt::format("</{}>", mark);
  const std::string begin = *mark == '\0' ? "" : fmt::format("<{}>", mark);
  return fmt::format("{}{}{} predicted as {}{}{}", begin, escape_html(report.classes[truth]), end, begin,
                     escape_html(report.classes[predicted]), end);
}

using Cell = std::pair<std::size_t, std::size_t>;  // truth, predicted

std::map<Cell, const CellImages*> cells_of(const TrainingReport& report) {
  std::map<Cell, const CellImages*> cells;
  for (const CellImages& cell : report.cells) cells[{cell.truth, cell.predicted}] = &cell;
  return cells;
}

std::int64_t count_of(const TrainingReport& report, const Cell& cell) {
  return report.confusion[cell.first * report.classes.size() + cell.second];
}

// ---- the matrix

std::string most_frequent(const TrainingReport& report, const Confusion& all) {
  if (all.pairs.empty()) return "Nothing was confused.";
  const ConfusedPair& worst = all.pairs.front();
  return fmt::format("The most frequent confusion: {} predicted as {}, {} {}.", report.classes[worst.truth],
                     report.classes[worst.predicted], format_count(worst.count),
                     worst.count == 1 ? "time" : "times");
}

std::string cell_html(const TrainingReport& report, const Confusion& all, const Cell& cell) {
  const auto [truth, predicted] = cell;
  const std::int64_t count = count_of(report, cell);
  const bool right = truth == predicted;
  const char* kind = right ? " class=\"right\"" : count == 0 ? " class=\"none\"" : "";
  if (count == 0) return fmt::format("<td{}>·</td>", kind);
  // Shades end at one half so that text stays readable; single mistakes must stay visible.
  const double share = share_of(count, all.classes[truth].images);
  const double shade = right ? 0.5 * share : 0.08 + 0.47 * share / all.worst_share;
  const std::string title =
      fmt::format("{}: {} ({})", pair_name(report, truth, predicted), count, percent(share));
  if (report.cells.empty())
    return fmt::format("<td{} style=\"--s:{:.2f}\" title=\"{}\">{}</td>", kind, shade, title, count);
  return fmt::format(
      "<td{} style=\"--s:{:.2f}\"><a id=\"from-{}-{}\" href=\"#cell-{}-{}\" title=\"{}\">{}</a></td>", kind,
      shade, truth, predicted, truth, predicted, title, count);
}

std::string matrix_html(const TrainingReport& report, const Confusion& all) {
  const std::size_t count = report.classes.size();
  const bool upright = std::ranges::any_of(
      report.classes, [](const std::string& name) { return display_width(one_line(name)) > 3; });
  std::string html = fmt::format(
      "<table class=\"confusion\">\n<colgroup><col class=\"names\"/><col span=\"{}\"/></colgroup>\n"
      "<thead><tr><td class=\"axis\" rowspan=\"2\">true class ↓</td><th class=\"axis\" scope=\"colgroup\" "
      "colspan=\"{}\">predicted class →</th></tr>\n<tr>",
      count, count);
  for (std::size_t i = 0; i < count; ++i)
    html += fmt::format("<th scope=\"col\"><div{}>{}</div></th>", upright ? " class=\"long\"" : "",
                        class_name(report, i));
  html += "</tr></thead>\n<tbody>\n";
  for (std::size_t truth = 0; truth < count; ++truth) {
    html += fmt::format("<tr><th scope=\"row\">{}</th>", class_name(report, truth));
    for (std::size_t predicted = 0; predicted < count; ++predicted)
      html += cell_html(report, all, {truth, predicted});
    html += "</tr>\n";
  }
  return scroll_box("Confusion matrix", html + "</tbody></table>");
}

// One per cell that is not empty, hidden until the address ends in its id.
std::string panels_html(const TrainingReport& report) {
  if (report.cells.empty()) return {};
  const std::map<Cell, const CellImages*> cells = cells_of(report);
  std::string html;
  for (std::size_t truth = 0; truth < report.classes.size(); ++truth)
    for (std::size_t predicted = 0; predicted < report.classes.size(); ++predicted) {
      const std::int64_t count = count_of(report, {truth, predicted});
      if (count == 0) continue;
      const auto found = cells.find({truth, predicted});
      const std::size_t shown = found == cells.end() ? 0 : found->second->images.size();
      html += fmt::format(
          "<div class=\"cell\" id=\"cell-{}-{}\" role=\"region\" aria-label=\"{}\" tabindex=\"-1\">\n"
          "<p><a class=\"close\" href=\"#from-{}-{}\">Close</a>{}: {} of {} {} shown, {}.</p>\n",
          truth, predicted, pair_name(report, truth, predicted), truth, predicted,
          pair_name(report, truth, predicted, "b"), shown, format_count(count),
          count == 1 ? "image" : "images",
          shown == 0 ? "to keep this page small" : "the most confident first");
      if (shown > 0) html += images_html(found->second->images, false);
      html += "</div>\n";
    }
  return html;
}

// ---- the list

std::string share_bar(double share, int color) {
  if (!std::isfinite(share)) return {};
  return fmt::format("<span class=\"share c{}\"><i style=\"width:{:.0f}%\"></i></span>", color,
                     100 * std::clamp(share, 0.0, 1.0));
}

std::string share_cell(double share, int color) {
  return fmt::format("<td class=\"number\">{}{}</td>", percent(share), share_bar(share, color));
}

std::string list_html(const TrainingReport& report, const Confusion& all) {
  const std::map<Cell, const CellImages*> cells = cells_of(report);
  std::string html =
      "<table class=\"confusions\">\n<thead><tr><th scope=\"col\">true class</th><th scope=\"col\">predicted "
      "class</th><th class=\"number\" scope=\"col\">images</th><th class=\"number\" scope=\"col\">of the "
      "true class</th>";
  html += report.cells.empty()
              ? "</tr></thead>\n<tbody>\n"
              : "<th scope=\"col\">pictures, most confident first</th></tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < std::min(all.pairs.size(), max_listed_confusions); ++i) {
    const ConfusedPair& pair = all.pairs[i];
    html += fmt::format("<tr><td>{}</td><td>{}</td><td class=\"number\">{}</td>{}",
                        escape_html(report.classes[pair.truth]), escape_html(report.classes[pair.predicted]),
                        format_count(pair.count), share_cell(all.share(pair), 5));
    if (!report.cells.empty()) {
      const auto found = cells.find({pair.truth, pair.predicted});
      html += "<td class=\"thumbs\">";
      std::int64_t shown = 0;
      if (found != cells.end())
        for (const ClassifiedImage& image : found->second->images) {
          html += thumbnail_html(image);
          ++shown;
        }
      if (shown < pair.count) html += fmt::format("<span>{} of {}</span>", shown, format_count(pair.count));
      html += "</td>";
    }
    html += "</tr>\n";
  }
  return scroll_box("Most frequent confusions", html + "</tbody></table>", "tall");
}

std::string list_sentence(const TrainingReport& report, const Confusion& all) {
  if (all.pairs.empty()) return "Nothing was confused.";
  if (all.pairs.size() <= max_listed_confusions)
    return fmt::format("Every pair of the {} classes that was confused, the most frequent first.",
                       report.classes.size());
  return fmt::format("The {} most frequent of {} confusions between {} classes.", max_listed_confusions,
                     format_count(std::ssize(all.pairs)), report.classes.size());
}

// ---- the classes

std::string class_table(const TrainingReport& report, const Confusion& all) {
  std::string html =
      "<table>\n<thead><tr><th scope=\"col\">class</th><th class=\"number\" scope=\"col\">images</th><th "
      "class=\"number\" scope=\"col\">recall</th><th class=\"number\" scope=\"col\">precision</th><th "
      "scope=\"col\">most often predicted as</th></tr></thead>\n<tbody>\n";
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
  return scroll_box("Classes", html + "</tbody></table>", "tall");
}

// Widths in pixels that follow from the class names and counts. They are exact, so that the hint is shown
// only where the matrix is wider than its box.
std::string widths_style(const TrainingReport& report) {
  int letters = 0;
  std::int64_t largest = 0;
  for (const std::string& name : report.classes)
    letters = std::max(letters, std::min(display_width(one_line(name)), 24));
  for (const std::int64_t count : report.confusion) largest = std::max(largest, count);
  const int classes = static_cast<int>(report.classes.size());
  const int digits = static_cast<int>(fmt::formatted_size("{}", largest));
  const int usual_cell = classes <= 12 ? 38 : classes <= 20 ? 34 : 30;
  // Room for the counts, and for the heading above them.
  const int cell = std::max({usual_cell, 8 * digits + 4, 140 / std::max(classes, 1)});
  const int names = std::max(64, 8 * letters + 18), narrow_names = std::min(names, 92), around = 12;
  const int width = names + classes * cell + around, narrow_width = narrow_names + classes * cell + around;
  std::string css = fmt::format(".confusion{{--classes:{};--cell:{}px;--names:{}px;--narrow:{}px}}\n",
                                classes, cell, names, narrow_names);
  // The table of the classes is beside the matrix where both fit.
  css += fmt::format(".pair>.tall{{flex:1 1 {}px}}\n", 590 + 8 * letters);
  css += fmt::format(
      "@container (min-width:560.1px) and (max-width:{}px){{.hint{{display:block}}}}\n"
      "@container (max-width:{}px){{.hint{{display:block}}}}\n",
      width - 1, std::min(560, narrow_width - 1));
  // On paper the matrix is as wide as a column or, with many classes, as the sheet.
  const int print_names = 4 * letters + 34, print_width = classes > 12 ? 690 : 335;
  return css + fmt::format("@media print{{.confusion{{--cell:{}px;--names:{}px}}}}\n",
                           std::min((print_width - print_names) / std::max(classes, 1), 26), print_names);
}

}  // namespace

PageSection confusion_section(const TrainingReport& report, const Confusion& all) {
  const bool matrix = report.classes.size() <= max_matrix_classes;
  std::string text = list_sentence(report, all);
  if (matrix) {
    text =
        "Rows are the true classes, columns the predicted ones. The blue diagonal is correct; the redder "
        "another cell, the larger the share of its row that was predicted as that class. " +
        most_frequent(report, all);
    if (!report.cells.empty()) text += " Select a number to see its images.";
  }
  const std::string classes_text =
      "Recall is the share of a class's images that were predicted as that class; precision is the share of "
      "the images predicted as that class that belong to it.";
  PageSection section{.title = matrix ? "Confusion matrix" : "Most frequent confusions", .body_html = {}};
  section.body_html = fmt::format("<p>{}</p>\n", escape_html(text));
  const std::string classes_html = fmt::format("<p>{}</p>\n", escape_html(classes_text));
  if (matrix)
    section.body_html +=
        classes_html +
        fmt::format(
            "<div class=\"matrix{}\">\n<p class=\"hint\"><b>→</b> The matrix is wider than "
            "its box: scroll it sideways to see all {} predicted classes.</p>\n<div class=\"pair\">\n",
            report.classes.size() > 12 ? " full" : "", report.classes.size()) +
        matrix_html(report, all) + class_table(report, all) + "</div></div>\n" + panels_html(report);
  else
    section.body_html +=
        (all.pairs.empty() ? "" : list_html(report, all)) + classes_html + class_table(report, all);
  return section;
}

std::string confusion_style(const TrainingReport& report) {
  return matrix_style + (report.classes.size() <= max_matrix_classes ? widths_style(report) : std::string());
}

}  // namespace tandem
