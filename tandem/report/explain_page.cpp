#include "tandem/report/explain_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/image/encode_png.h"
#include "tandem/image/heat_map.h"
#include "tandem/report/html.h"
#include "tandem/report/page.h"
#include "tandem/report/pictures.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

constexpr const char* style = R"(
.explained{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,520px),1fr));gap:14px;margin:0 0 22px;align-items:start}
.explained.one{grid-template-columns:1fr}
.explained figure{padding:12px;border-left:4px solid var(--line)}.explained figure.right{border-left-color:var(--good)}
.explained figure.wrong{border-left-color:var(--bad)}
.explained .pair{display:grid;grid-template-columns:1fr 1fr;gap:6px;align-items:start}
.explained img{display:block;width:100%;height:auto;border-radius:5px}
.explained figcaption{margin-top:8px;font-size:15px;line-height:1.35;overflow-wrap:anywhere}
.explained figcaption span{display:block;color:var(--soft);font-size:13px}
.explained .unread{color:var(--bad)}
.command{display:block;white-space:pre-wrap;overflow-wrap:anywhere;background:var(--card);border:1px solid var(--line);border-radius:10px;
padding:10px 16px;margin:0 0 22px;font:14px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
@media print{.explained{grid-template-columns:repeat(3,1fr);gap:3px 6px}.explained figure{padding:2px 4px;break-inside:avoid}
.explained figcaption{margin-top:1px;font-size:6.5pt}.explained figcaption span{font-size:5.5pt}}
)";

std::string picture_html(const ExplainedPicture& picture) {
  const std::string path = escape_html(picture.path);
  if (!picture.error.empty())
    return fmt::format(
        "<figure><figcaption><b class=\"unread\">not "
        "read</b><span>{}</span><span>{}</span></figcaption></figure>\n",
        escape_html(picture.error), path);
  const bool known = !picture.truth.empty(), right = picture.truth == picture.predicted;
  std::string caption =
      fmt::format("<b>{}</b> {}", escape_html(picture.predicted), percent(picture.probability));
  if (known && !right) caption += fmt::format(", is <b>{}</b>", escape_html(picture.truth));
  if (picture.explained != picture.predicted)
    caption += fmt::format("; the map is of <b>{}</b> {}", escape_html(picture.explained),
                           percent(picture.explained_probability));
  if (picture.is_empty) caption += "; nothing in the image speaks for this class";
  return fmt::format(
      "<figure class=\"{}\"><div class=\"pair\"><img alt=\"{}\" src=\"data:image/jpeg;base64,{}\"/>"
      "<img alt=\"where {} was found in {}\" src=\"data:image/jpeg;base64,{}\"/></div>"
      "<figcaption>{}<span>{}</span></figcaption></figure>\n",
      !known  ? ""
      : right ? "right"
              : "wrong",
      path, base64(picture.photo), escape_html(picture.explained), path, base64(picture.overlay), caption,
      path);
}

}  // namespace

std::string heat_legend_text(bool uncovered) {
  return std::string(
             "From dark to bright: how much a region speaks for the class, relative to the strongest one. "
             "The line is at half of it.") +
         (uncovered ? " The model does not see the dark border." : "");
}

std::string heat_legend_html(bool uncovered) {
  const std::vector<std::uint8_t> scale = encode_png(heat_scale(16, 256));
  return fmt::format(
      "<p class=\"heat\"><img alt=\"from dark violet to bright yellow\" "
      "src=\"data:image/png;base64,{}\"/>{}</p>\n",
      base64({scale.begin(), scale.end()}), escape_html(heat_legend_text(uncovered)));
}

std::string heat_legend_style() {
  return R"(.heat{display:flex;flex-wrap:wrap;gap:4px 14px;align-items:center;font-size:14.5px;color:var(--soft)}
.heat img{width:192px;max-width:100%;height:14px;border-radius:4px}
)";
}

std::string explain_page(const ExplainReport& report) {
  const auto shown = std::ssize(report.pictures);
  Page page{.title = "Where the model looks",
            .summary = fmt::format("{} image{}{}", format_count(shown), shown == 1 ? "" : "s",
                                   report.files > report.pictures.size()
                                       ? fmt::format(", evenly chosen of {}.",
                                                     format_count(static_cast<std::int64_t>(report.files)))
                                       : "."),
            .style = style + heat_legend_style()};
  if (!report.command.empty())
    page.lead_html = fmt::format("<code class=\"command\">{}</code>\n", escape_html(report.command));
  page.facts = report.facts;
  page.provenance = report.provenance;
  std::string body = heat_legend_html(report.uncovered);
  body += fmt::format("<div class=\"explained{}\">\n", shown == 1 ? " one" : "");
  for (const ExplainedPicture& picture : report.pictures) body += picture_html(picture);
  page.sections.push_back({.title = "Class activation maps", .body_html = body + "</div>\n"});
  page.footer_html =
      "<p>A map shows what the last convolutional layer used for the class. It is coarse, and a region that "
      "speaks for a class need not be the cause a person would give.</p>";
  return html_page(page);
}

}  // namespace tandem
