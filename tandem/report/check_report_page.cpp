// A check as one HTML page with pictures.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tandem/report/check_report.h"
#include "tandem/report/html.h"
#include "tandem/report/page.h"
#include "tandem/report/pictures.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

using Limits = CheckPageLimits;

constexpr const char* style = R"(
.shots{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:14px;margin:0 0 22px}
.shots figure{padding:10px}.shots img{display:block;width:100%;aspect-ratio:1;object-fit:contain;background:var(--track);border-radius:5px}
.shots figcaption{margin-top:8px;font-size:13.5px;line-height:1.35;overflow-wrap:anywhere}
.shots figcaption span{display:block;color:var(--soft);font-size:13px}
.groups{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,390px),1fr));gap:14px;margin:0 0 18px;align-items:start}
.group{padding:12px 14px 2px;background:var(--card);border:1px solid var(--line);border-left:4px solid var(--accent);border-radius:10px}
.group.bad{border-left-color:var(--bad)}.group .shots{margin-bottom:8px}.group figure{padding:0;border:0}
.group>p{margin:0 0 10px;font-size:14.5px;color:var(--soft)}
.counts{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:12px;margin:0 0 22px;padding:0;list-style:none}
.counts li{padding:12px 16px;background:var(--card);border:1px solid var(--line);border-radius:10px;font-size:14px;line-height:1.35;color:var(--soft)}
.counts b{display:block;font-size:27px;line-height:1.15;color:var(--ink);font-variant-numeric:tabular-nums}
.counts li.bad b{color:var(--bad)}.counts li.good b{color:var(--good)}
td.bad{color:var(--bad);font-weight:600}
@media screen and (max-width:600px){.shots{grid-template-columns:repeat(auto-fill,minmax(120px,1fr));gap:10px}
.counts{grid-template-columns:repeat(2,1fr);gap:8px}.counts li{padding:9px 12px}}
@media print{.shots{grid-template-columns:repeat(6,1fr);gap:2px 4px;margin-bottom:3px}.shots figure{padding:0;border:0}.shots figcaption,.shots figcaption span{font-size:5pt}
.group{padding:2px 4px;break-inside:avoid}.counts{grid-template-columns:repeat(5,1fr);gap:4px}.counts li{padding:3px 5px;font-size:6.5pt}.counts b{font-size:10pt}}
)";

// A path may be broken after each folder.
std::string path_html(const std::string& path) {
  std::string html;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t slash = path.find('/', begin);
    const std::size_t end = slash == std::string::npos ? path.size() : slash + 1;
    html += (begin > 0 ? "<wbr/>" : "") + escape_html(path.substr(begin, end - begin));
    begin = end;
  }
  return html;
}

std::string picture_html(const CheckedImage& image, const std::string& caption_html) {
  const std::string name = escape_html(image.path);
  const std::string picture =
      image.picture.empty()
          ? ""
          : fmt::format("<img alt=\"{}\" src=\"data:image/jpeg;base64,{}\"/>", name, base64(image.picture));
  return fmt::format("<figure>{}<figcaption>{}<span>{}</span></figcaption></figure>\n", picture, caption_html,
                     path_html(image.path));
}

std::string more_html(std::size_t all, std::size_t shown) {
  if (all <= shown) return {};
  return fmt::format("<p>… and {} more, which the JSON has.</p>\n",
                     format_count(static_cast<std::int64_t>(all - shown)));
}

std::string copy_html(const CopiedPicture& picture) {
  const bool bad = picture.in_several_parts() || picture.in_several_classes();
  std::string figures;
  for (std::size_t i = 0; i < std::min(Limits::images_per_copy, picture.images.size()); ++i) {
    const CheckedImage& image = picture.images[i];
    const std::string relation = i == 0 ? "" : picture.originals[i] == 0 ? ", same bytes" : ", same picture";
    figures += picture_html(image, fmt::format("{}x{}{}", image.width, image.height, relation));
  }
  std::string note;
  if (picture.in_several_parts() && picture.in_several_classes()) note = "Also in several classes.";
  if (picture.images.size() > Limits::images_per_copy)
    note += fmt::format("{}{} files, {} are shown.", note.empty() ? "" : " ", picture.images.size(),
                        Limits::images_per_copy);
  return fmt::format("<div class=\"group{}\">{}<div class=\"shots\">{}</div></div>\n", bad ? " bad" : "",
                     note.empty() ? "" : "<p>" + escape_html(note) + "</p>", figures);
}

PageSection copies_section(const std::string& title, const std::string& introduction,
                           const std::vector<const CopiedPicture*>& pictures, Verdict verdict) {
  std::string body = fmt::format("<p>{}</p>\n<div class=\"groups\">\n", escape_html(introduction));
  const std::size_t shown = std::min(Limits::copies, pictures.size());
  for (std::size_t i = 0; i < shown; ++i) body += copy_html(*pictures[i]);
  body += "</div>\n";
  return {.title = fmt::format("{}: {}", title, format_count(std::ssize(pictures))),
          .body_html = body + more_html(pictures.size(), shown),
          .verdict = verdict};
}

PageSection not_read_section(const CheckReport& report) {
  constexpr std::size_t max_rows = 500;
  std::string rows;
  const std::size_t shown = std::min(max_rows, report.not_read.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const NotReadFile& file = report.not_read[i];
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", escape_html(file.path),
                        escape_html(name_of(file.kind)), escape_html(file.reason));
  }
  return {
      .title = "Not read: " + format_count(std::ssize(report.not_read)),
      .body_html = fmt::format("<p>{}.</p>\n", escape_html(report.not_read_counts)) +
                   scroll_box("Files that are not read",
                              "<table><thead><tr><th scope=\"col\">file</th><th scope=\"col\">why</th><th "
                              "scope=\"col\">details</th></tr></thead><tbody>\n" +
                                  rows + "</tbody></table>",
                              shown > 12 ? "tall" : "") +
                   more_html(report.not_read.size(), shown),
      .verdict = Verdict::bad};
}

PageSection mislabels_section(const CheckedFeatures& features) {
  std::string body;
  if (!features.note.empty())
    body = fmt::format("<p>{}</p>\n", escape_html(features.note));
  else
    body = fmt::format(
        "<p>Logistic regression on the features of {} ({}) predicted each label from images of other folds, "
        "{} "
        "folds in all. It agrees with {:.1f} % of the labels. Where it does not, either may be wrong; the "
        "most "
        "confident are first.</p>\n",
        escape_html(features.model), escape_html(features.weights), features.folds, 100 * features.accuracy);
  const std::size_t shown = std::min(Limits::mislabels, features.mislabels.size());
  std::string figures;
  for (std::size_t i = 0; i < shown; ++i) {
    const LikelyMislabel& one = features.mislabels[i];
    figures += picture_html(one.image, fmt::format("<b>{}</b>, more like <b>{}</b> ({})",
                                                   escape_html(one.image.label), escape_html(one.suggested),
                                                   format_number(one.suggested_probability, Unit::share)));
  }
  if (shown > 0) body += "<div class=\"shots\">" + figures + "</div>\n";
  return {.title = "Likely mislabels: " + format_count(std::ssize(features.mislabels)),
          .body_html = body + more_html(features.mislabels.size(), shown)};
}

PageSection outliers_section(const CheckedFeatures& features) {
  const std::size_t shown = std::min(Limits::outliers, features.outliers.size());
  std::string figures;
  for (std::size_t i = 0; i < shown; ++i) {
    const Outlier& one = features.outliers[i];
    figures += picture_html(
        one.image, fmt::format("<b>{}</b> {:.1f} × as far", escape_html(one.image.label), one.distance));
  }
  return {.title = "Outliers: " + format_count(std::ssize(features.outliers)),
          .body_html =
              "<p>Images whose features are far from those of all others: the distance to the nearest "
              "ones, relative to the median of all images.</p>\n<div class=\"shots\">" +
              figures + "</div>\n" + more_html(features.outliers.size(), shown)};
}

std::string odd_html(const std::vector<OddImage>& images) {
  if (images.empty()) return {};
  std::string figures;
  const std::size_t shown = std::min(Limits::odd, images.size());
  for (std::size_t i = 0; i < shown; ++i)
    figures += picture_html(images[i].image, fmt::format("<b>{}</b>", escape_html(images[i].reason)));
  return "<div class=\"shots\">" + figures + "</div>\n" + more_html(images.size(), shown);
}

Plot classes_plot(const CheckReport& report) {
  Plot plot{.title = "Images per class",
            .x_label = "",
            .y_label = "images",
            .kind = PlotKind::bars,
            .y_unit = Unit::count};
  for (const std::string& part : report.parts) plot.series.push_back({.name = part, .x = {}, .y = {}});
  for (const CheckedClass& one : report.classes) {
    plot.categories.push_back(one.name);
    for (std::size_t i = 0; i < one.images.size(); ++i)
      plot.series[i].y.push_back(static_cast<double>(one.images[i]));
  }
  return plot;
}

PageSection classes_section(const CheckReport& report) {
  constexpr std::size_t max_bars = 40;
  std::string body;
  for (const std::string& sentence : report.balance)
    body += fmt::format("<li>{}</li>\n", escape_html(sentence));
  if (!body.empty()) body = "<ul class=\"findings\">" + body + "</ul>\n";
  if (report.classes.size() * report.parts.size() <= max_bars) body += plots_html({classes_plot(report)});
  std::string table = "<table><thead><tr><th scope=\"col\">class</th>";
  for (const std::string& part : report.parts)
    table += fmt::format("<th class=\"number\" scope=\"col\">{}</th>",
                         part.empty() ? "images" : escape_html(part));
  table += "</tr></thead><tbody>\n";
  for (const CheckedClass& one : report.classes) {
    table += fmt::format("<tr><td>{}</td>", escape_html(one.name));
    for (const std::int64_t images : one.images)
      table += fmt::format("<td class=\"number{}\">{}</td>", images == 0 ? " bad" : "", format_count(images));
    table += "</tr>\n";
  }
  body +=
      scroll_box("Images per class", table + "</tbody></table>", report.classes.size() > 12 ? "tall" : "");
  return {.title = "Classes", .body_html = body};
}

PageSection sizes_section(const CheckedSizes& sizes) {
  std::string body = fmt::format(
      "<p>The shorter side is {} to {} pixels, the median {}; width / height is {:.2f} to {:.2f}, the "
      "median {:.2f}.",
      format_count(sizes.min_side), format_count(sizes.max_side), format_count(sizes.median_side),
      sizes.min_aspect, sizes.max_aspect, sizes.median_aspect);
  std::string frequent;
  for (const SizeCount& size : sizes.frequent)
    frequent += fmt::format("{}{}x{} ({})", frequent.empty() ? "" : ", ", size.width, size.height,
                            format_count(size.images));
  body += fmt::format(" Most frequent: {}.</p>\n", frequent);
  Plot plot{.title = "Images by shorter side",
            .x_label = "",
            .y_label = "images",
            .kind = PlotKind::bars,
            .y_unit = Unit::count};
  plot.series.push_back({.name = "", .x = {}, .y = {}});
  for (std::size_t i = 0; i < sizes.shorter_sides.size(); ++i) {
    if (plot.categories.empty() && sizes.shorter_sides[i] == 0) continue;
    plot.categories.push_back(fmt::format("{}–{} px", std::int64_t{1} << i, (std::int64_t{2} << i) - 1));
    plot.series[0].y.push_back(static_cast<double>(sizes.shorter_sides[i]));
  }
  if (plot.categories.size() > 1) body += plots_html({plot});
  return {.title = "Sizes", .body_html = body + odd_html(sizes.odd)};
}

std::string counts_html(const CheckReport& report, const SortedCopies& sorted) {
  std::string items;
  const auto add = [&](std::size_t count, const char* name, bool serious) {
    items += fmt::format("<li class=\"{}\"><b>{}</b>{}</li>\n",
                         count == 0 ? "good"
                         : serious  ? "bad"
                                    : "",
                         format_count(static_cast<std::int64_t>(count)), name);
  };
  const CopyCounts copies = count_copies(report);
  const auto conflicts = std::ranges::count_if(
      report.copies, [](const CopiedPicture& picture) { return picture.in_several_classes(); });
  add(report.not_read.size(), "files not read", true);
  if (report.parts.size() > 1) add(sorted.leaks.size(), "pictures in several parts", true);
  if (!report.classes.empty()) add(static_cast<std::size_t>(conflicts), "pictures in several classes", true);
  add(static_cast<std::size_t>(copies.identical), "identical copies", false);
  add(static_cast<std::size_t>(copies.near), "near copies", false);
  if (report.features && report.features->note.empty())
    add(report.features->mislabels.size(), "likely mislabels", false);
  if (report.features) add(report.features->outliers.size(), "outliers", false);
  add(report.sizes.odd.size(), "odd sizes", false);
  add(report.colors.size(), "odd colors", false);
  return "<ul class=\"counts\">\n" + items + "</ul>\n";
}

void add_copy_sections(const CheckReport& report, const SortedCopies& sorted, Page& page) {
  if (!sorted.leaks.empty())
    page.sections.push_back(copies_section(
        "In several parts",
        "The same picture is in several parts of the data. A model that was trained on it is not "
        "tested on it: the accuracy would be too high.",
        sorted.leaks, Verdict::bad));
  if (!sorted.conflicts.empty())
    page.sections.push_back(copies_section(
        "In several classes", "The same picture has several labels. At most one of them is right.",
        sorted.conflicts, Verdict::bad));
  if (!sorted.others.empty() || report.partly_compared > 0)
    page.sections.push_back(copies_section(
        "Copies",
        "The same picture is there more than once: the same bytes, or resized, compressed again or cropped "
        "by about "
        "2 %." +
            (report.partly_compared > 0
                 ? fmt::format(" {} images have so many similar ones that not all of them were compared.",
                               format_count(report.partly_compared))
                 : ""),
        sorted.others, Verdict::none));
}

}  // namespace

std::string check_page(const CheckReport& report) {
  const auto classes = std::ssize(report.classes);
  Page page{
      .title = "Check of " + report.data,
      .summary = fmt::format(
          "{} image{}{}, read and compared in {}.", format_count(report.images),
          report.images == 1 ? "" : "s",
          classes == 0 ? "" : fmt::format(" in {} class{}", format_count(classes), classes == 1 ? "" : "es"),
          format_duration(report.seconds)),
      .style = style};
  const SortedCopies sorted = sorted_copies(report);
  page.lead_html = counts_html(report, sorted);
  if (!report.not_read.empty()) page.sections.push_back(not_read_section(report));
  add_copy_sections(report, sorted, page);
  if (report.features) page.sections.push_back(mislabels_section(*report.features));
  if (report.features && !report.features->outliers.empty())
    page.sections.push_back(outliers_section(*report.features));
  if (!report.classes.empty()) page.sections.push_back(classes_section(report));
  page.sections.push_back(sizes_section(report.sizes));
  if (!report.colors.empty())
    page.sections.push_back({.title = "Odd colors: " + format_count(std::ssize(report.colors)),
                             .body_html = odd_html(report.colors)});
  page.footer_html = "<p>Nothing was changed. <code>--fix list.csv</code> writes what to move.</p>";
  page.provenance = report.provenance;
  return html_page(page);
}

}  // namespace tandem
