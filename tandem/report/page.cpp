// The style sheet and the skeleton. System fonts; colors for light, dark and print; no external resources.
#include "tandem/report/page.h"

#include <fmt/format.h>

#include "tandem/report/html.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr const char* page_style = R"(
:root{color-scheme:light dark;--paper:#f6f7f9;--card:#fff;--ink:#1c2430;--soft:#5c6878;--line:#e1e5ea;--accent:#2f6fd0;
--good:#14744f;--good-back:#e3f4ec;--bad:#b3261e;--bad-back:#fdeceb;--track:#e9edf2;--hover:#f3f6fa;--edge:rgba(0,0,0,.2)}
@media screen and (prefers-color-scheme:dark){:root{--paper:#12161c;--card:#1a2029;--ink:#e4e9f0;--soft:#98a5b5;--line:#2c3541;
--accent:#7db0f7;--good:#63d3a3;--good-back:#15342a;--bad:#ff8f87;--bad-back:#44201f;--track:#2b3440;--hover:#202833;--edge:rgba(255,255,255,.22)}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Lato,"Noto Sans",Arial,sans-serif}
main,header,footer{max-width:1180px;margin:0 auto;padding:0 24px}
header{padding-top:40px}
h1{font-size:32px;line-height:1.2;letter-spacing:-.015em;margin:0 0 10px}
h2{font-size:23px;line-height:1.25;letter-spacing:-.01em;margin:0 0 8px}
p{margin:0 0 14px;max-width:76ch}
a{color:var(--accent)}
.summary{color:var(--soft);margin:0 0 22px}
.mark{display:inline-block;border-radius:99px;padding:1px 11px;font-size:14px;font-weight:600;margin-right:8px}
.mark.good{color:var(--good);background:var(--good-back)}.mark.bad{color:var(--bad);background:var(--bad-back)}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(190px,1fr));gap:14px 28px;margin:0 0 22px;
padding:16px 20px;background:var(--card);border:1px solid var(--line);border-radius:10px}
.facts dt{color:var(--soft);font-size:13px}.facts dd{margin:0;overflow-wrap:anywhere;font-weight:500;line-height:1.4}
nav{display:flex;flex-wrap:wrap;gap:8px;margin:0 0 8px}
nav a{text-decoration:none;border:1px solid var(--line);background:var(--card);border-radius:99px;padding:4px 14px;font-size:15px}
nav a:hover{border-color:var(--accent)}nav a.bad{color:var(--bad);border-color:var(--bad)}
section{padding:34px 0 4px;scroll-margin-top:8px}
section+section{border-top:1px solid var(--line);margin-top:36px}
.findings{margin:0 0 22px;padding:14px 20px 14px 38px;background:var(--card);border:1px solid var(--line);
border-left:4px solid var(--accent);border-radius:10px}
.findings li{margin:3px 0;max-width:92ch}.findings .bad{color:var(--bad);font-weight:600}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:18px;margin:0 0 22px;align-items:start}
figure{margin:0;padding:16px 18px 10px;background:var(--card);border:1px solid var(--line);border-radius:10px}
@media (min-width:1000px){.plots figure:last-child:nth-child(odd){grid-column:1/-1}
.plots figure:last-child:nth-child(odd) svg{max-width:540px;margin:0 auto}}
.scroll{overflow-x:auto;background:linear-gradient(to left,var(--card) 40%,transparent) right/36px 100% no-repeat local,
linear-gradient(to left,var(--edge),transparent) right/12px 100% no-repeat scroll,var(--card);border:1px solid var(--line);border-radius:10px;margin:0 0 16px}
table{border-collapse:collapse;width:100%;font-size:14.5px;font-variant-numeric:tabular-nums}
th,td{padding:6px 14px;text-align:left;white-space:nowrap}
.number{text-align:right}
thead th{color:var(--soft);font-weight:500;font-size:13px;border-bottom:1px solid var(--line);padding-top:11px;padding-bottom:9px}
thead th[title]{cursor:help}
tbody+tbody th.group{border-top:1px solid var(--line)}
th.group{font-weight:600;padding-top:13px;padding-bottom:4px}
tbody tr:last-child td{padding-bottom:13px}
tbody tr:hover td{background:var(--hover)}
td:first-child,thead th:first-child{position:sticky;left:0;background:var(--card)}
.tall{max-height:560px;overflow-y:auto}
.tall thead th{position:sticky;top:0;background:var(--card);z-index:1}.tall thead th:first-child{z-index:2}
tr.fastest td{font-weight:650}
tr td.faint{color:var(--soft);font-weight:400}
tr.wrong td{color:var(--bad)}
.dot{display:inline-block;width:9px;height:9px;border-radius:50%;background:var(--c);margin-right:9px}
.share{display:inline-block;width:64px;height:7px;border-radius:4px;background:var(--track);margin-left:9px;vertical-align:1px;
overflow:hidden;text-align:left}
.share i{display:block;height:100%;border-radius:4px;background:var(--c)}
details.note{color:var(--soft);font-size:14px}details.note summary{cursor:pointer}
details.note dl{display:grid;grid-template-columns:max-content 1fr;gap:3px 16px;margin:10px 0 0}
details.note dt{font-weight:600}details.note dd{margin:0}
footer{color:var(--soft);font-size:14px;padding-top:34px;padding-bottom:44px}
footer h2{font-size:16px;color:var(--ink);margin-top:18px}
.made{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:0}.made dt{font-weight:600}
.made dd{margin:0;overflow-wrap:anywhere}
.versions{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,320px),1fr));gap:4px 24px;margin:0 0 20px;font-size:15px}
.versions div{display:flex;gap:10px}.versions dt{font-weight:600;white-space:nowrap}.versions dd{margin:0;color:var(--soft);min-width:0;overflow-wrap:anywhere}
@media screen and (max-width:600px){main,header,footer{padding-left:14px;padding-right:14px}header{padding-top:24px}
h1{font-size:26px}h2{font-size:21px}.facts{grid-template-columns:repeat(auto-fill,minmax(140px,1fr));gap:10px 16px;padding:14px}
figure{padding:12px 10px 8px}.findings{padding:12px 14px 12px 30px}table{font-size:13.5px}th,td{padding-left:9px;padding-right:9px}}
@media (min-width:601px){.facts .long{grid-column:span 2}}
@media print{@page{margin:9mm}:root{--paper:#fff;--card:#fff;--ink:#000;--soft:#444;--line:#ccc;--track:#ddd}
body{font-size:7pt;line-height:1.28}h1{font-size:14pt;margin-bottom:3px}h2{font-size:9.5pt;margin-bottom:2px}h2,h2+p{break-after:avoid}p{margin-bottom:3px;max-width:none}
header,main,footer{max-width:none;padding:0}main{columns:2;column-gap:6mm}nav,details.note,.share{display:none}
figure,.findings,.facts,.versions,tr{break-inside:avoid}.summary{margin-bottom:4px}.mark{font-size:7pt;padding:0 6px}
.facts{grid-template-columns:repeat(6,1fr);padding:4px 8px;gap:2px 10px;margin-bottom:4px;border-radius:4px}.facts dt{font-size:6.3pt}.facts dd{line-height:1.25}
section{padding:4px 0 0}section+section{margin-top:4px}
.findings{padding:2px 4px 2px 14px;margin-bottom:3px;border-width:0 0 0 2px;border-radius:0}.findings li{margin:0;max-width:none}
.versions{display:block;font-size:inherit;margin-bottom:3px}.versions div{display:block}.versions dd,.versions dt{display:inline}.versions dt{margin-right:5px}
.plots{grid-template-columns:1fr 1fr;gap:1px;margin:1px 0 2px}.plots .long{display:none}.plots figure{padding:2px 3px 0;border:0}
.plots figure:last-child:nth-child(odd){grid-column:auto}
.scroll{overflow:visible;border:0;margin-bottom:3px;background:none}.scroll.wide{column-span:all}.tall{max-height:none}table{font-size:5.6pt;line-height:1.18}th,td{padding:.8px 1.5px}
td:first-child,thead th:first-child,.tall thead th{position:static}.dot{width:6px;height:6px;margin-right:4px}
thead th{padding:1px 1.5px;font-size:5.4pt}th.group{padding:2px 1.5px 0}tbody tr:last-child td{padding-bottom:1px}
footer{font-size:6.5pt;padding-top:5px}footer h2{font-size:8pt;margin-top:3px}.made{grid-template-columns:repeat(3,max-content 1fr);gap:0 10px}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
)";

const char* verdict_class(Verdict verdict) {
  return verdict == Verdict::bad ? "bad" : verdict == Verdict::good ? "good" : "";
}

std::string contents_html(const std::vector<PageSection>& sections) {
  std::string links;
  for (std::size_t i = 0; i < sections.size(); ++i)
    links += fmt::format(R"(<a class="{}" href="#section-{}">{}</a>)", verdict_class(sections[i].verdict),
                         i + 1, escape_html(sections[i].title));
  return fmt::format("<nav aria-label=\"Contents\">{}</nav>\n", links);
}

std::string provenance_html(const std::vector<Fact>& facts) {
  if (facts.empty()) return {};
  std::string items;
  for (const Fact& fact : facts)
    items += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape_html(fact.name), escape_html(fact.value));
  return fmt::format("<h2>How this page was made</h2>\n<dl class=\"made\">\n{}</dl>\n", items);
}

// JSON that no text in it can end: "<" is only within its strings.
std::string script_text(std::string_view json) {
  std::string text;
  for (const char c : json) text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

// A plot of many bars takes a third of a printed sheet. It is not printed: the table has the same figures.
bool is_long(const Plot& plot) {
  constexpr std::size_t max_bars = 16;
  return plot.categories.size() * plot.series.size() > max_bars;
}

}  // namespace

std::string facts_html(const std::vector<Fact>& facts) {
  if (facts.empty()) return {};
  std::string items;
  for (const Fact& fact : facts)
    items += fmt::format("<div{}><dt>{}</dt><dd>{}</dd></div>\n",
                         display_width(fact.value) > 60 ? " class=\"long\"" : "", escape_html(fact.name),
                         escape_html(fact.value));
  return fmt::format("<dl class=\"facts\">\n{}</dl>\n", items);
}

std::string scroll_box(const std::string& label, const std::string& table_html, const char* classes) {
  return fmt::format("<div class=\"scroll{}{}\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">{}</div>\n",
                     *classes == '\0' ? "" : " ", classes, escape_html(label), table_html);
}

std::string plots_html(const std::vector<Plot>& plots) {
  if (plots.empty()) return {};
  std::string cards;
  for (const Plot& plot : plots)
    cards += fmt::format("<figure{}>{}{}</figure>\n", is_long(plot) ? " class=\"long\"" : "", svg(plot),
                         svg(plot, narrow_plot));
  return fmt::format("<div class=\"plots\">\n{}</div>\n", cards);
}

std::string html_page(const Page& page) {
  const std::string title = escape_html(page.title);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{}</title>\n{}"
      "<style>{}{}{}</style>\n</head>\n<body>\n<header>\n<h1>{}</h1>\n",
      title, page.head_html, page_style, plot_style(), page.style, title);
  if (!page.summary.empty()) {
    const std::string mark = page.verdict == Verdict::none  ? ""
                             : page.verdict == Verdict::bad ? R"(<span class="mark bad">✗ wrong</span>)"
                                                            : R"(<span class="mark good">✓ correct</span>)";
    html += fmt::format("<p class=\"summary\">{}{}</p>\n", mark, escape_html(page.summary));
  }
  html += page.lead_html + facts_html(page.facts);
  if (page.has_contents && page.sections.size() > 1) html += contents_html(page.sections);
  html += "</header>\n<main>\n";
  for (std::size_t i = 0; i < page.sections.size(); ++i)
    html += fmt::format("<section id=\"section-{}\"{}>\n<h2>{}</h2>\n{}</section>\n", i + 1,
                        page.sections[i].hidden ? " class=\"hidden\"" : "",
                        escape_html(page.sections[i].title), page.sections[i].body_html);
  html += "</main>\n";
  if (!page.footer_html.empty() || !page.provenance.empty())
    html += fmt::format("<footer>{}{}</footer>\n", page.footer_html, provenance_html(page.provenance));
  if (!page.data.empty())
    html +=
        fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n", script_text(page.data));
  if (!page.script.empty()) html += fmt::format("<script>\n{}</script>\n", page.script);
  return html + "</body>\n</html>\n";
}

}  // namespace tandem
