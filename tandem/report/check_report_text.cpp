// A check for the terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tandem/report/check_report.h"
#include "tandem/text/format_number.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr std::size_t max_lines = 8, max_files = 4, max_classes = 20;

std::string counted(std::int64_t count, const char* singular, const char* plural) {
  return fmt::format("{} {}", format_count(count), count == 1 ? singular : plural);
}

class TextReport {
 public:
  TextReport(const CheckReport& report, const TextStyle& style) : report_(report), style_(style) {}

  std::string text() {
    add_summary();
    add_not_read();
    const SortedCopies sorted = sorted_copies(report_);
    add_copies("In several parts of the data", sorted.leaks);
    add_copies("In several classes", sorted.conflicts);
    add_copies("Copies", sorted.others);
    if (!report_.copies.empty()) line("(= the same bytes, ~ the same picture)", Tone::faint);
    if (report_.partly_compared > 0)
      paragraph(fmt::format("{} so many similar ones that not all of them were compared.",
                            report_.partly_compared == 1
                                ? "1 image has"
                                : format_count(report_.partly_compared) + " images have"));
    if (report_.features) add_features(*report_.features);
    add_classes();
    add_sizes();
    add_odd("Odd colors", report_.colors);
    return std::move(text_);
  }

 private:
  void line(const std::string& content, Tone tone = Tone::plain) {
    text_ += colorize(shorten(one_line(content), style_.width), tone, style_) + "\n";
  }
  // A path is cut off at its beginning: the name of the file says more.
  void path_line(const std::string& before, const std::string& path, const std::string& after) {
    const std::string name = one_line(path), rest = one_line(after);
    const int room = std::max(8, style_.width - display_width(before) - display_width(rest));
    line(before + shorten_front(name, room) + rest);
  }
  static std::string shorten_front(const std::string& text, int width) {
    if (display_width(text) <= width) return text;
    std::string_view rest = text;
    while (!rest.empty() && display_width(rest) > width - 1) take_code_point(rest);
    return "…" + std::string(rest);
  }
  void heading(const std::string& content, Tone tone = Tone::strong) {
    text_ += "\n";
    line(content, tone);
  }
  void paragraph(const std::string& content) {
    for (const std::string& one : wrap(one_line(content), style_.width)) line(one);
  }
  void more(std::size_t all, std::size_t shown) {
    if (all > shown)
      line(fmt::format("  … and {} more; --json has all",
                       format_count(static_cast<std::int64_t>(all - shown))),
           Tone::faint);
  }

  void add_summary() {
    const auto classes = std::ssize(report_.classes);
    line(fmt::format("{}: {}{}", report_.data, counted(report_.images, "image", "images"),
                     classes > 0 ? " in " + counted(classes, "class", "classes") : ", no class folders"),
         Tone::strong);
    const SortedCopies sorted = sorted_copies(report_);
    const CopyCounts copies = count_copies(report_);
    Table table{.columns = {{"check"}, {"found", Align::right}}, .rows = {}};
    const auto row = [&](const std::string& name, std::size_t count, Tone tone) {
      table.rows.push_back(
          {.heading = "",
           .cells = {{name},
                     {format_count(static_cast<std::int64_t>(count)), count == 0 ? Tone::good : tone}}});
    };
    row("files that are not read", report_.not_read.size(), Tone::bad);
    if (report_.parts.size() > 1)
      row("pictures in several parts of the data", sorted.leaks.size(), Tone::bad);
    const auto conflicts = std::ranges::count_if(
        report_.copies, [](const CopiedPicture& picture) { return picture.in_several_classes(); });
    if (classes > 0) row("pictures in several classes", static_cast<std::size_t>(conflicts), Tone::bad);
    row("identical copies", static_cast<std::size_t>(copies.identical), Tone::strong);
    row("near copies: resized, compressed again, cropped", static_cast<std::size_t>(copies.near),
        Tone::strong);
    if (report_.features && report_.features->note.empty())
      row("likely mislabels", report_.features->mislabels.size(), Tone::strong);
    if (report_.features) row("outliers", report_.features->outliers.size(), Tone::strong);
    row("odd sizes", report_.sizes.odd.size(), Tone::strong);
    row("odd colors", report_.colors.size(), Tone::strong);
    text_ += format_table(table, style_);
  }

  void add_not_read() {
    if (report_.not_read.empty()) return;
    heading("Not read: " + report_.not_read_counts);
    const std::size_t shown = std::min(max_lines, report_.not_read.size());
    for (std::size_t i = 0; i < shown; ++i) {
      const NotReadFile& file = report_.not_read[i];
      const int room = std::max(16, style_.width - display_width(one_line(file.path)) - 4);
      path_line("  ", file.path, ": " + shorten(one_line(file.reason), room));
    }
    more(report_.not_read.size(), shown);
  }

  void add_copies(const char* title, const std::vector<const CopiedPicture*>& pictures) {
    if (pictures.empty()) return;
    heading(fmt::format("{}: {}", title, counted(std::ssize(pictures), "picture", "pictures")));
    const std::size_t shown = std::min(max_lines, pictures.size());
    for (std::size_t i = 0; i < shown; ++i) {
      const auto& [images, originals] = *pictures[i];
      const bool identical = pictures[i]->is_identical();
      for (std::size_t k = 0; k < std::min(max_files, images.size()); ++k)
        path_line(k == 0              ? "  "
                  : originals[k] == 0 ? "  = "
                                      : "  ~ ",
                  images[k].path,
                  identical ? "" : fmt::format(" ({}x{})", images[k].width, images[k].height));
      if (images.size() > max_files)
        line(fmt::format("    … and {} more files", images.size() - max_files), Tone::faint);
    }
    more(pictures.size(), shown);
  }

  void add_features(const CheckedFeatures& features) {
    if (!features.note.empty()) {
      heading("Likely mislabels");
      paragraph(features.note);
    } else {
      heading(fmt::format("Likely mislabels: {}", format_count(std::ssize(features.mislabels))));
      paragraph(
          fmt::format("By logistic regression on the features of {} ({}), {}-fold cross-validation: it "
                      "agrees with {:.1f} % "
                      "of the labels.",
                      features.model, features.weights, features.folds, 100 * features.accuracy));
    }
    const std::size_t labels = std::min(2 * max_lines, features.mislabels.size());
    for (std::size_t i = 0; i < labels; ++i) {
      const LikelyMislabel& one = features.mislabels[i];
      path_line("  ", one.image.path,
                fmt::format(": {} {:.0f} %", one.suggested, std::floor(100 * one.suggested_probability)));
    }
    more(features.mislabels.size(), labels);
    if (features.outliers.empty()) return;
    heading(fmt::format("Outliers, unlike their neighbors: {}", format_count(std::ssize(features.outliers))));
    const std::size_t outliers = std::min(max_lines, features.outliers.size());
    for (std::size_t i = 0; i < outliers; ++i)
      path_line("  ", features.outliers[i].image.path,
                fmt::format(": {:.1f} times the usual distance", features.outliers[i].distance));
    more(features.outliers.size(), outliers);
  }

  void add_classes() {
    if (report_.classes.empty()) return;
    heading("Classes");
    Table table{.columns = {{"class"}}, .rows = {}};
    for (const std::string& part : report_.parts)
      table.columns.push_back({part.empty() ? "images" : one_line(part), Align::right});
    const std::size_t shown = std::min(max_classes, report_.classes.size());
    for (std::size_t i = 0; i < shown; ++i) {
      std::vector<TableCell> cells{{one_line(report_.classes[i].name)}};
      for (const std::int64_t images : report_.classes[i].images)
        cells.push_back({format_count(images), images == 0 ? Tone::bad : Tone::plain});
      table.rows.push_back({.heading = "", .cells = std::move(cells)});
    }
    text_ += format_table(table, style_);
    more(report_.classes.size(), shown);
    for (const std::string& sentence : report_.balance) paragraph(sentence);
  }

  void add_sizes() {
    const CheckedSizes& sizes = report_.sizes;
    heading("Sizes");
    if (sizes.min_side == sizes.max_side && sizes.min_aspect == sizes.max_aspect && !sizes.frequent.empty()) {
      line(fmt::format("All images are {}x{}", sizes.frequent[0].width, sizes.frequent[0].height));
    } else {
      line(fmt::format("Shorter side {} to {}, median {}; width / height {:.2f} to {:.2f}, median {:.2f}",
                       format_count(sizes.min_side), format_count(sizes.max_side),
                       format_count(sizes.median_side), sizes.min_aspect, sizes.max_aspect,
                       sizes.median_aspect));
      std::string frequent;
      for (const SizeCount& size : sizes.frequent)
        frequent += fmt::format("{}{}x{} ({})", frequent.empty() ? "" : ", ", size.width, size.height,
                                format_count(size.images));
      paragraph("Most frequent: " + frequent);
    }
    add_odd("Odd sizes", sizes.odd);
  }

  void add_odd(const char* title, const std::vector<OddImage>& images) {
    if (images.empty()) return;
    heading(fmt::format("{}: {}", title, format_count(std::ssize(images))));
    const std::size_t shown = std::min(max_lines, images.size());
    for (std::size_t i = 0; i < shown; ++i) path_line("  ", images[i].image.path, ": " + images[i].reason);
    more(images.size(), shown);
  }

  const CheckReport& report_;
  const TextStyle& style_;
  std::string text_;
};

}  // namespace

std::string check_text(const CheckReport& report, const TextStyle& style) {
  return TextReport(report, style).text();
}

}  // namespace tandem
