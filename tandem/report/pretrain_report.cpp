#include "tandem/report/pretrain_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tandem/report/html.h"
#include "tandem/report/page.h"
#include "tandem/report/pictures.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

constexpr const char* pretrain_style = R"(
.headline{display:flex;flex-wrap:wrap;gap:10px 44px;margin:0 0 24px;align-items:flex-end}
.headline div{line-height:1.2}.headline b{display:block;font-size:26px;font-weight:650}.headline span{color:var(--soft);font-size:14px}
.command{display:block;white-space:pre-wrap;overflow-wrap:anywhere;background:var(--card);border:1px solid var(--line);border-radius:10px;
padding:10px 16px;margin:0 0 22px;font:14px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.pairs{display:flex;flex-wrap:wrap;gap:14px}.pairs figure{margin:0;display:flex;gap:3px}.pairs img{width:112px;height:112px;display:block}
@media(max-width:500px){.pairs img{width:76px;height:76px}}
)";

template <class Figure>
Plot plot(const PretrainReport& report, const std::string& title, Figure figure, Unit unit = Unit::none) {
  Series series{.name = "", .x = {}, .y = {}};
  for (const PretrainRecord& record : report.records) {
    series.x.push_back(static_cast<double>(record.step));
    series.y.push_back(figure(record));
  }
  Plot plot{.title = title, .x_label = "step", .y_unit = unit};
  plot.series = {std::move(series)};
  return plot;
}

double median_rate(const PretrainReport& report) {
  std::vector<double> rates;
  for (const PretrainRecord& record : report.records) rates.push_back(record.views_per_second);
  std::ranges::nth_element(rates, rates.begin() + std::ssize(rates) / 2);
  return rates[rates.size() / 2];
}

std::string headline(const PretrainReport& report) {
  const PretrainRecord& last = report.records.back();
  std::string html;
  const auto add = [&](const std::string& figure, const char* what) {
    html += fmt::format("<div><b>{}</b><span>{}</span></div>\n", escape_html(figure), what);
  };
  add(format_decimals(last.loss, 3), "loss");
  add(percent(last.retrieval_accuracy), "of the views find their other view");
  add(fmt::format("{} of {}", format_count(last.step), format_count(report.steps)), "steps");
  add(format_duration(last.seconds), "training time");
  add(format_rounded(median_rate(report)), "views/s, median");
  return fmt::format("<div class=\"headline\">\n{}</div>\n", html);
}

std::string pairs(const std::vector<std::string>& views) {
  std::string html = "<div class=\"pairs\">\n";
  for (std::size_t i = 0; i + 1 < views.size(); i += 2) {
    html += "<figure>";
    for (std::size_t k = i; k < i + 2; ++k)
      html += fmt::format("<img alt=\"view {} of image {}\" src=\"data:image/png;base64,{}\">", k - i + 1,
                          i / 2 + 1, base64(views[k]));
    html += "</figure>\n";
  }
  return html + "</div>\n";
}

}  // namespace

std::string pretrain_csv_header() {
  return "step,loss,retrieval_accuracy,attribute_loss,alignment,uniformity,learning_rate,seconds,"
         "views_per_second\n";
}

std::string pretrain_csv_row(const PretrainRecord& r) {
  return fmt::format("{},{},{},{},{},{},{},{:.3f},{:.1f}\n", r.step, r.loss, r.retrieval_accuracy,
                     r.attribute_loss, r.alignment, r.uniformity, r.learning_rate, r.seconds,
                     r.views_per_second);
}

std::string pretrain_page(const PretrainReport& report) {
  Page page;
  page.title = report.title;
  page.style = pretrain_style;
  page.facts = report.facts;
  page.provenance = report.provenance;
  if (!report.records.empty()) page.lead_html = headline(report);
  if (!report.command.empty())
    page.lead_html += fmt::format("<code class=\"command\">{}</code>\n", escape_html(report.command));
  if (!report.records.empty()) {
    std::vector<Plot> plots{plot(report, "Loss (NT-Xent)", [](const PretrainRecord& r) { return r.loss; }),
                            plot(
                                report, "Retrieval accuracy",
                                [](const PretrainRecord& r) { return r.retrieval_accuracy; }, Unit::share),
                            plot(report, "Alignment", [](const PretrainRecord& r) { return r.alignment; }),
                            plot(report, "Uniformity", [](const PretrainRecord& r) { return r.uniformity; })};
    if (std::ranges::any_of(report.records, [](const PretrainRecord& r) { return r.attribute_loss > 0; }))
      plots.push_back(
          plot(report, "Loss of the attributes", [](const PretrainRecord& r) { return r.attribute_loss; }));
    plots.push_back(plot(report, "Learning rate", [](const PretrainRecord& r) { return r.learning_rate; }));
    page.sections.push_back(
        {.title = "Training",
         .body_html =
             "<p>Retrieval accuracy is the share of views whose most similar view in the batch is the other "
             "view of the same image. Alignment is the mean squared distance of the two views of an image; "
             "uniformity falls as embeddings fill the sphere more evenly. None of them says how good the "
             "features are for a task: measure that with <code>tandem probe</code>.</p>\n" +
             plots_html(plots)});
  }
  if (!report.views.empty())
    page.sections.push_back(
        {.title = "Views", .body_html = "<p>Two views of each of some images.</p>\n" + pairs(report.views)});
  return html_page(page);
}

}  // namespace tandem
