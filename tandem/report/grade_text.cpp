#include "tandem/report/grade_text.h"

#include <fmt/format.h>

#include "tandem/report/comparison.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

Tone tone_of(double points, double of) {
  return points < 0.05 ? Tone::bad : points > of - 0.05 ? Tone::good : Tone::plain;
}

}  // namespace

std::string grade_text(const GradeReport& report, const TextStyle& style) {
  std::string text = colorize(fmt::format("{}: {} of {} points", one_line(report.student),
                                          format_points(report.points()), format_points(report.of())),
                              Tone::strong, style) +
                     fmt::format(" ({})\n", report.profile);
  if (!report.problem.empty()) return text + findings_text({report.problem}, style);
  if (report.not_graded() > 0)
    text += fmt::format("{} more points were not graded: machine too noisy.\n",
                        format_points(report.not_graded()));
  Table table{.columns = {{"part"}, {"file"}, {"points", Align::right}, {"of", Align::right}}};
  for (const GradedPart& part : report.parts)
    table.rows.push_back({.cells = {{part.name},
                                    {part.file.empty() ? "–" : part.file},
                                    {format_points(part.points), tone_of(part.points, part.of)},
                                    {format_points(part.of)}}});
  text += "\n" + format_table(table, style);
  for (const GradedPart& part : report.parts) {
    std::vector<std::string> sentences;
    for (const LostPoints& lost : lost_points(part)) sentences.push_back(lost.sentence);
    if (!sentences.empty())
      text += "\n" + colorize(part.name, Tone::strong, style) + "\n" + findings_text(sentences, style);
  }
  for (const std::string& missing : report.missing_protections) text += fmt::format("\nNote: {}.", missing);
  return report.missing_protections.empty() ? text : text + "\n";
}

std::string class_text(std::span<const GradeReport> reports, const TextStyle& style) {
  Table table{.columns = {{"student"}, {"points", Align::right}}};
  if (!reports.empty())
    for (const GradedPart& part : reports.front().parts) table.columns.push_back({part.name, Align::right});
  for (const GradeReport& report : reports) {
    TableRow row{.cells = {{one_line(report.student)},
                           {format_points(report.points()), tone_of(report.points(), report.of())}}};
    for (const GradedPart& part : report.parts)
      row.cells.push_back({format_points(part.points), tone_of(part.points, part.of)});
    table.rows.push_back(std::move(row));
  }
  return format_table(table, style);
}

}  // namespace tandem
