#include "tandem/study/kernel_sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tandem/core/check.h"
#include "tandem/report/study_rows.h"
#include "tandem/study/compare_rows.h"
#include "tandem/text/parse_number.h"

namespace tandem {
namespace {

// The rows of one size, such as "1024x1024 f32".
struct SizeRows {
  std::string size;
  std::vector<StudyRow> rows;
};

std::string kernel_text(const StudyRow& row) {
  return row.case_name.substr(row.case_name.rfind(' ') + 1);
}

double weights_of(const StudyRow& row) {
  const KernelSize kernel = parse_kernel_size(kernel_text(row));
  return static_cast<double>(kernel.rows) * static_cast<double>(kernel.columns);
}

std::vector<SizeRows> rows_by_size(const std::vector<StudyRow>& rows) {
  std::vector<SizeRows> sizes;
  for (const StudyRow& row : rows) {
    const std::string size = row.case_name.substr(0, row.case_name.rfind(' '));
    auto found = std::ranges::find(sizes, size, &SizeRows::size);
    if (found == sizes.end()) found = sizes.insert(found, {.size = size, .rows = {}});
    found->rows.push_back(row);
  }
  return sizes;
}

// The fastest correct row of a version for each kernel, from the fewest weights to the most.
std::vector<const StudyRow*> swept_rows(const std::vector<StudyRow>& rows, const std::string& version) {
  std::map<std::string, const StudyRow*> fastest;
  for (const StudyRow& row : rows)
    if (const StudyRow* const best = fastest_row(rows, row.case_name, version)) fastest[row.case_name] = best;
  std::vector<const StudyRow*> swept;
  for (const auto& [name, row] : fastest) swept.push_back(row);
  std::ranges::stable_sort(swept, {}, [](const StudyRow* row) { return weights_of(*row); });
  return swept;
}

std::string growth(const StudyRow& small, const StudyRow& large) {
  if (compare_speed(large, small) == Speed::unclear) return "not clearly longer or shorter";
  return times_text(times_as_fast(small, large)) + " as long";
}

std::string range(const StudyRow& small, const StudyRow& large) {
  return fmt::format("from {} to {}, {:.3g} times the weights", kernel_text(small), kernel_text(large),
                     weights_of(large) / weights_of(small));
}

struct Spread {
  double value = 0;
  double low = 0;
  double high = 0;
};

// One line per version over the kernel size: the side of square kernels, else the number of weights. Without
// lines if no version has three kernels with that value.
template <class F>
Plot kernel_plot(const SizeRows& one, F&& value_of) {
  constexpr std::size_t min_kernels = 3;
  const bool square = std::ranges::all_of(one.rows, [](const StudyRow& row) {
    const KernelSize kernel = parse_kernel_size(kernel_text(row));
    return kernel.rows == kernel.columns;
  });
  Plot plot;
  plot.x_label = square ? "rows and columns of the kernel" : "weights of the kernel";
  plot.log_x = true;
  std::size_t kernels = 0;
  int color = 0;
  for (const std::string& version : versions_of(one.rows)) {
    Series series{.name = version, .x = {}, .y = {}, .color = color++};
    for (const StudyRow* const row : swept_rows(one.rows, version)) {
      const Spread spread = value_of(*row);
      if (!std::isfinite(spread.value)) continue;
      series.x.push_back(square ? std::sqrt(weights_of(*row)) : weights_of(*row));
      series.y.push_back(spread.value);
      series.low.push_back(spread.low);
      series.high.push_back(spread.high);
    }
    kernels = std::max(kernels, series.x.size());
    if (!series.x.empty()) plot.series.push_back(std::move(series));
  }
  if (kernels < min_kernels) plot.series.clear();
  return plot;
}

}  // namespace

KernelSize parse_kernel_size(std::string_view text) {
  constexpr std::int64_t max_side = 65536;
  const auto sides = parse_numbers<std::int64_t>(text, 'x').value_or(std::vector<std::int64_t>{});
  check(!sides.empty() && sides.size() <= 2 && std::ranges::min(sides) >= 1 &&
            std::ranges::max(sides) <= max_side,
        "[study correlation] expected a kernel size such as 5 or 3x5, at most {}, got '{}'", max_side, text);
  return {.rows = sides.front(), .columns = sides.back()};
}

std::vector<std::string> kernel_cases(const std::vector<std::string>& sizes,
                                      const std::vector<KernelSize>& kernels) {
  std::vector<std::string> cases;
  for (const std::string& size : sizes)
    for (const KernelSize& kernel : kernels)
      cases.push_back(fmt::format("{} {}x{}", size, kernel.rows, kernel.columns));
  return cases;
}

std::vector<std::string> kernel_findings(const std::vector<StudyRow>& rows) {
  std::vector<std::string> findings;
  for (const SizeRows& one : rows_by_size(rows)) {
    // Versions that were measured with the same kernels share the words about them.
    std::map<std::string, std::vector<std::string>> grown;
    std::vector<std::string> ranges;
    for (const std::string& version : versions_of(one.rows)) {
      const std::vector<const StudyRow*> swept = swept_rows(one.rows, version);
      if (swept.empty() || weights_of(*swept.front()) == weights_of(*swept.back())) continue;
      const std::string kernels = range(*swept.front(), *swept.back());
      if (!grown.contains(kernels)) ranges.push_back(kernels);
      grown[kernels].push_back(fmt::format("{} {}", version, growth(*swept.front(), *swept.back())));
    }
    for (const std::string& kernels : ranges)
      findings.push_back(
          fmt::format("Time of {}, {}: {}.", one.size, kernels, fmt::join(grown[kernels], ", ")));
  }
  return findings;
}

std::vector<Plot> kernel_plots(const std::vector<StudyRow>& rows) {
  std::vector<Plot> plots;
  for (const SizeRows& one : rows_by_size(rows)) {
    Plot time = kernel_plot(one, [](const StudyRow& row) {
      const double median_ms = row.value("median_ms");
      return Spread{median_ms, row.figures["min_ms"].value_or(median_ms),
                    row.figures["max_ms"].value_or(median_ms)};
    });
    if (time.series.empty()) continue;
    time.title = "Time over the kernel size: " + one.size;
    time.y_label = "median time, logarithmic: lower is better";
    time.log_y = true;
    time.y_unit = Unit::milliseconds;
    Plot share = kernel_plot(one, [](const StudyRow& row) {
      const double median_ms = row.value("median_ms"), value = row.value("share_of_peak");
      return Spread{value, value * median_ms / row.figures["max_ms"].value_or(median_ms),
                    value * median_ms / row.figures["min_ms"].value_or(median_ms)};
    });
    share.title = "Share of peak over the kernel size: " + one.size;
    share.y_label = "share of this machine's measured peak: higher is better";
    share.y_unit = Unit::share;
    plots.push_back(std::move(time));
    if (!share.series.empty()) plots.push_back(std::move(share));
  }
  return plots;
}

void add_kernel_plots(StudyReport& report) {
  std::vector<Plot> plots = kernel_plots(report.rows);
  if (plots.empty()) return;
  std::erase_if(report.plots, [](const Plot& plot) {
    return std::ranges::any_of(study_fields,
                               [&](const StudyField& field) { return plot.title == field.plot.title; });
  });
  report.plots.insert(report.plots.begin(), plots.begin(), plots.end());
}

}  // namespace tandem
