// The page of a class. A click on a column's name checks an invisible radio button; the style sheet then
// orders the rows by the position that each row has in that order.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tandem/report/grade_page.h"
#include "tandem/report/html.h"
#include "tandem/report/page.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

constexpr const char* style = R"(
.sorters{position:absolute;opacity:0;pointer-events:none}
.class table{display:block;min-width:max-content}.class thead,.class tbody,.class tfoot{display:flex;flex-direction:column}
.class tr{display:grid;grid-template-columns:minmax(11em,2fr) repeat(var(--columns),minmax(8em,1fr))}
.class th label{cursor:pointer;text-decoration:underline dotted;text-underline-offset:3px}
.class td.zero{color:var(--bad)}.class td.noisy::after{content:" *";color:var(--soft)}
.class tfoot td{border-top:1px solid var(--line);color:var(--soft);padding-top:9px;padding-bottom:11px}
.class tr td:first-child{overflow:hidden;text-overflow:ellipsis}
.bars{display:grid;grid-template-columns:max-content minmax(60px,1fr) 3em;gap:5px 14px;align-items:center;max-width:640px;
padding:16px 20px;background:var(--card);border:1px solid var(--line);border-radius:10px}
.bars i{display:block;height:12px}.bars i u{display:block;height:100%;border-radius:3px;background:var(--accent)}
.bars .number{font-variant-numeric:tabular-nums}.bars i+.number{text-align:left}
@media print{.class tr{grid-template-columns:minmax(7em,2fr) repeat(var(--columns),minmax(4em,1fr))}}
)";

// Column 0 is the total, the others are the parts.
struct Column {
  std::string title;
  double of = 0;
};

double value(const ClassEntry& entry, std::size_t column) {
  return column == 0 ? entry.report.points() : entry.report.parts[column - 1].points;
}

// For every entry its place when sorted: by name for none, else by the points of a column, best first.
std::vector<std::size_t> places(std::span<const ClassEntry> entries, std::size_t column, bool by_name) {
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    if (by_name) return entries[a].report.student < entries[b].report.student;
    return value(entries[a], column) > value(entries[b], column);
  });
  std::vector<std::size_t> place(entries.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  return place;
}

std::string table_html(std::span<const ClassEntry> entries, const std::vector<Column>& columns) {
  std::string radios, rules, header;
  std::vector<std::vector<std::size_t>> orders;
  for (std::size_t i = 0; i <= columns.size(); ++i) {
    const bool by_name = i == 0;
    orders.push_back(places(entries, by_name ? 0 : i - 1, by_name));
    const std::string title = by_name ? "student" : columns[i - 1].title;
    radios += fmt::format(
        "<input class=\"sorters\" type=\"radio\" name=\"sort\" id=\"sort-{}\" aria-label=\"Sort by {}\"{}/>",
        i, escape_html(title), by_name ? " checked" : "");
    rules += fmt::format(
        "#sort-{0}:checked~.class tbody tr{{order:var(--o{0})}}#sort-{0}:checked~.class label[for=sort-{0}]"
        "{{color:var(--ink);font-weight:650}}#sort-{0}:focus-visible~.class label[for=sort-{0}]{{outline:2px "
        "solid var(--accent)}}\n",
        i);
    header += fmt::format("<th{} scope=\"col\"><label for=\"sort-{}\">{}</label></th>",
                          by_name ? "" : " class=\"number\"", i, escape_html(title));
  }
  std::string rows;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::string places_css;
    for (std::size_t o = 0; o < orders.size(); ++o) places_css += fmt::format("--o{}:{};", o, orders[o][i]);
    const GradeReport& report = entries[i].report;
    rows += fmt::format("<tr style=\"{}\"><td><a href=\"{}\">{}</a></td>", places_css,
                        escape_html(entries[i].page), escape_html(report.student));
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const double points = value(entries[i], c);
      const bool noisy = c == 0 ? report.not_graded() > 0 : report.parts[c - 1].not_graded > 0;
      rows += fmt::format("<td class=\"number{}{}\">{}</td>", points < 0.05 ? " zero" : "",
                          noisy ? " noisy" : "", format_points(points));
    }
    rows += "</tr>\n";
  }
  std::string means = "<tfoot><tr><td>mean</td>";
  for (std::size_t c = 0; c < columns.size(); ++c) {
    double sum = 0;
    for (const ClassEntry& entry : entries) sum += value(entry, c);
    means +=
        fmt::format("<td class=\"number\">{} of {}</td>",
                    format_points(sum / static_cast<double>(entries.size())), format_points(columns[c].of));
  }
  const std::string table = fmt::format(
      "<table style=\"--columns:{}\"><thead><tr>{}</tr></thead><tbody>\n{}</tbody>{}</tr></tfoot></table>",
      columns.size(), header, rows, means);
  return fmt::format("<style>{}</style>{}{}", rules, radios,
                     scroll_box("Points of the class", table, "class"));
}

// How many students have 90 to 100 % of the points, 80 to 90 %, …, as bars.
std::string distribution_html(std::span<const ClassEntry> entries, double total) {
  constexpr std::size_t bins = 10;
  std::vector<int> counts(bins, 0);
  for (const ClassEntry& entry : entries) {
    const double share = total > 0 ? entry.report.points() / total : 0;
    ++counts[std::min(static_cast<std::size_t>(std::max(share, 0.0) * bins), bins - 1)];
  }
  const int most = std::max(1, *std::ranges::max_element(counts));
  std::string rows;
  for (std::size_t i = bins; i-- > 0;)
    rows += fmt::format(
        "<span class=\"number\">{}–{}</span><i aria-hidden=\"true\"><u style=\"width:{:.1f}%\"></u></i><span "
        "class=\"number\">{}</span>\n",
        format_points(total * static_cast<double>(i) / bins),
        format_points(total * static_cast<double>(i + 1) / bins), 100.0 * counts[i] / most,
        counts[i] == 0 ? "" : std::to_string(counts[i]));
  return fmt::format("<div class=\"bars\">\n{}</div>\n", rows);
}

}  // namespace

std::string class_page(std::span<const ClassEntry> entries, const std::string& title,
                       const std::vector<Fact>& provenance) {
  Page page{.title = title, .provenance = provenance, .style = style};
  if (entries.empty()) return html_page(page);
  std::vector<Column> columns{{"total", 0}};
  for (const GradedPart& part : entries.front().report.parts) {
    columns.push_back({part.name, part.of});
    columns[0].of += part.of;
  }
  std::vector<double> points;
  for (const ClassEntry& entry : entries) points.push_back(entry.report.points());
  std::ranges::sort(points);
  const double mean = std::accumulate(points.begin(), points.end(), 0.0) / static_cast<double>(points.size());
  page.summary = fmt::format("Graded by the profile {}.", entries.front().report.profile);
  page.facts = {{"students", std::to_string(entries.size())},
                {"mean", format_points(mean)},
                {"median", format_points((points[(points.size() - 1) / 2] + points[points.size() / 2]) / 2)},
                {"best", format_points(points.back())},
                {"points that can be reached", format_points(columns[0].of)}};
  const bool noisy =
      std::ranges::any_of(entries, [](const ClassEntry& entry) { return entry.report.not_graded() > 0; });
  std::string body =
      "<p>A click on the name of a column sorts by it; a student's name leads to the page that explains "
      "every lost point.</p>\n" +
      table_html(entries, columns);
  if (noisy)
    body +=
        "<p class=\"how\">* points for speed were not graded, because the machine was too noisy; grade "
        "again.</p>\n";
  page.sections = {{.title = "Points", .body_html = body},
                   {.title = "Distribution", .body_html = distribution_html(entries, columns[0].of)}};
  return html_page(page);
}

}  // namespace tandem
