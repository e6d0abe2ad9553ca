#include "tandem/report/grade_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tandem/report/html.h"
#include "tandem/report/page.h"
#include "tandem/report/pictures.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

constexpr const char* style = R"(
.total{display:flex;align-items:baseline;gap:12px;flex-wrap:wrap;margin:0 0 18px}
.total b{font-size:46px;line-height:1;letter-spacing:-.02em}.total span{color:var(--soft)}
.points{display:grid;grid-template-columns:minmax(8em,max-content) minmax(60px,1fr) max-content;gap:7px 16px;align-items:center;
margin:0 0 22px;padding:16px 20px;background:var(--card);border:1px solid var(--line);border-radius:10px}
.points i{display:block;height:10px;border-radius:5px;background:var(--track);overflow:hidden}
.points i u{display:block;height:100%;background:var(--good)}.points i u.part{background:var(--accent)}
.points .number{font-variant-numeric:tabular-nums;white-space:nowrap}
.losses{list-style:none;margin:0 0 18px;padding:0}
.losses li{margin:0 0 12px;padding:12px 18px;background:var(--card);border:1px solid var(--line);border-left:4px solid var(--bad);border-radius:10px}
.losses li.noisy{border-left-color:var(--soft)}.losses p{margin:0;overflow-wrap:anywhere}
.shots{display:flex;flex-wrap:wrap;gap:14px;margin:12px 0 2px}.shots figure{padding:0;border:0;background:none}
.shots img{display:block;image-rendering:pixelated;border:1px solid var(--line);border-radius:4px}
.shots figcaption{max-width:150px;color:var(--soft);font-size:13px;line-height:1.35;margin-top:4px}
code{overflow-wrap:anywhere;font-size:.92em}.good{color:var(--good)}td.bad{color:var(--bad)}
.how{color:var(--soft);font-size:14.5px}
@media print{.losses li,.points{break-inside:avoid}.shots img{width:80px}}
)";

std::string points_of(double points, double of) {
  return fmt::format("{} of {}", format_points(points), format_points(of));
}

std::string total_html(const GradeReport& report) {
  std::string note;
  if (report.not_graded() > 0)
    note = fmt::format(" {} more points were not graded: the machine was too noisy.",
                       format_points(report.not_graded()));
  std::string rows;
  for (const GradedPart& part : report.parts) {
    const double share = part.of > 0 ? part.points / part.of : 0;
    rows += fmt::format(
        "<span>{}</span><i aria-hidden=\"true\"><u class=\"{}\" style=\"width:{:.1f}%\"></u></i><span "
        "class=\"number\">{}</span>\n",
        escape_html(part.title), share > 0.995 ? "" : "part", 100 * share, points_of(part.points, part.of));
  }
  return fmt::format(
      "<p class=\"total\"><b>{}</b><span>of {} points.{}</span></p>\n<div class=\"points\">{}</div>\n",
      format_points(report.points()), format_points(report.of()), escape_html(note), rows);
}

std::string pictures_html(const std::vector<GradePicture>& pictures) {
  if (pictures.empty()) return {};
  std::string html;
  for (const GradePicture& picture : pictures)
    html += fmt::format(
        "<figure><img alt=\"{0}\" src=\"data:image/png;base64,{1}\"/><figcaption>{0}</figcaption></figure>",
        escape_html(picture.caption), base64(picture.png));
  return fmt::format("<div class=\"shots\">{}</div>", html);
}

std::string losses_html(const GradedPart& part) {
  std::string items;
  const auto add = [&](const std::string& sentence, const std::vector<GradePicture>& pictures, bool noisy) {
    items += fmt::format("<li{}><p>{}</p>{}</li>\n", noisy ? " class=\"noisy\"" : "", escape_html(sentence),
                         pictures_html(pictures));
  };
  for (const LostPoints& lost : lost_points(part)) add(lost.sentence, lost.pictures, lost.not_graded);
  return items.empty() ? items : fmt::format("<ul class=\"losses\">\n{}</ul>\n", items);
}

std::string cases_html(const GradedPart& part) {
  if (part.cases.empty()) return {};
  const bool timed =
      std::ranges::any_of(part.cases, [](const GradedCase& one) { return one.time.has_value(); });
  std::string html =
      "<table>\n<thead><tr><th scope=\"col\">case</th><th scope=\"col\">result</th><th class=\"number\" "
      "scope=\"col\">points</th>";
  if (timed)
    html +=
        "<th class=\"number\" scope=\"col\">time</th><th class=\"number\" scope=\"col\">reference</th><th "
        "class=\"number\" scope=\"col\">ratio</th><th class=\"number\" scope=\"col\">points for speed</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (const GradedCase& one : part.cases) {
    html += fmt::format("<tr><td>{}</td><td class=\"{}\">{}</td><td class=\"number\">{}</td>",
                        escape_html(one.name), one.correct() ? "good" : "bad",
                        one.correct() ? "✓ correct" : "✗ wrong", points_of(one.points, one.of));
    if (timed && one.time && one.time->student_ms == 0)
      html += fmt::format("<td class=\"number\">not timed</td><td></td><td></td><td class=\"number\">{}</td>",
                          points_of(0, one.time->of));
    else if (timed && one.time)
      html += fmt::format(
          "<td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td "
          "class=\"number\">{}</td>",
          format_number(one.time->student_ms, Unit::milliseconds),
          format_number(one.time->reference_ms, Unit::milliseconds),
          format_number(one.time->ratio, Unit::ratio),
          one.time->too_noisy ? "not graded" : points_of(one.time->points, one.time->of));
    else if (timed)
      html += "<td></td><td></td><td></td><td></td>";
    html += "</tr>\n";
  }
  return scroll_box("Cases of " + part.title, html + "</tbody></table>");
}

PageSection part_section(const GradedPart& part) {
  std::string body = fmt::format("<p>{}.", escape_html(part.task));
  if (!part.file.empty()) body += fmt::format(" Graded file: <code>{}</code>.", escape_html(part.file));
  if (!part.reference.empty())
    body += fmt::format(" Timed against Tandem's version <code>{}</code>.", escape_html(part.reference));
  body += "</p>\n" + losses_html(part) + cases_html(part);
  return {.title = fmt::format("{}: {} points", part.title, points_of(part.points, part.of)),
          .body_html = body,
          .verdict = part.points < part.of - part.not_graded - 0.05 ? Verdict::bad : Verdict::none};
}

// What a student may not know stays out: the seed, and the command line, which may have it.
std::vector<Fact> public_facts(std::vector<Fact> facts) {
  std::erase_if(facts, [](const Fact& fact) { return fact.name == "seed" || fact.name == "command"; });
  return facts;
}

}  // namespace

std::string grade_page(const GradeReport& report) {
  Page page{.title = report.student, .summary = report.title, .style = style};
  page.lead_html = total_html(report);
  if (!report.problem.empty())
    page.lead_html += fmt::format("<ul class=\"losses\"><li><p>{}</p></li></ul>\n",
                                  escape_html("The submission cannot be graded: " + report.problem + "."));
  else
    for (const GradedPart& part : report.parts) page.sections.push_back(part_section(part));
  page.facts = report.machine;
  std::set<std::string> commands;
  for (const GradedPart& part : report.parts)
    if (!part.command.empty() && commands.insert(part.command).second)
      page.footer_html += fmt::format("<p>{} was compiled with <code>{}</code></p>\n", escape_html(part.file),
                                      escape_html(part.command));
  page.footer_html += fmt::format(
      "<p>Every result was checked on inputs that were made for this grading, outputs were filled with other "
      "values "
      "before, and the code ran in a process of its own. A time is the fastest of many runs; the reference "
      "ran in turns "
      "with the submission. All points for speed up to {:g} times the reference's time, none from {:g} times "
      "on, linear "
      "in the logarithm of the time between them.</p>",
      report.full_up_to, report.zero_from);
  page.provenance = public_facts(report.provenance);
  return html_page(page);
}

}  // namespace tandem
