#include "tandem/study/correlation.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/correlate.h"
#include "tandem/ops/random.h"
#include "tandem/study/kernel_sweep.h"
#include "tandem/study/machine_report.h"
#include "tandem/study/studies.h"
#include "tandem/study/study_case.h"

namespace tandem {
namespace {

template <class T>
double exact_pixel(const Tensor& image, const Tensor& kernel, std::int64_t element) {
  const std::int64_t height = image.size(0), width = image.size(1), rows = kernel.size(0),
                     columns = kernel.size(1);
  const std::int64_t y = element / width, x = element % width;
  double sum = 0;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::int64_t from_y = y + i - rows / 2, from_x = x + j - columns / 2;
      if (from_y >= 0 && from_y < height && from_x >= 0 && from_x < width)
        sum += static_cast<double>(kernel.data<T>()[i * columns + j]) *
               static_cast<double>(image.data<T>()[from_y * width + from_x]);
    }
  return sum;
}

StudyCase make_case(const std::string& name, const StudyOptions& options) {
  const CaseName parsed = parse_case(studies().get("correlation"), name);
  check_fits("correlation", name,
             2.0 * static_cast<double>(parsed.rows) * static_cast<double>(parsed.columns) +
                 static_cast<double>(parsed.kernel_rows) * static_cast<double>(parsed.kernel_columns));
  const DType dtype = parse_dtype(parsed.type);
  const Tensor image = uniform({parsed.rows, parsed.columns}, 0, 1, {.seed = options.seed, .dtype = dtype});
  const Tensor kernel = uniform({parsed.kernel_rows, parsed.kernel_columns}, -1, 1,
                                {.seed = options.seed, .stream = 1, .dtype = dtype});
  return {
      .name = name,
      .function = "correlation",
      .inputs = {image, kernel},
      .compute = [](std::span<const Tensor> in, Version version) { return correlate(in[0], in[1], version); },
      .exact =
          [image, kernel](std::int64_t element) {
            return on_dtype(TypeList<float, double>{}, image.dtype(), "correlation",
                            [&]<class T>() { return exact_pixel<T>(image, kernel, element); });
          },
      .tolerance = dtype == DType::f32 ? 1e-5 : 1e-12,
      .bytes = 2 * image.numel() * static_cast<std::int64_t>(size_of(dtype)),
      .operations = 2 * image.numel() * kernel.numel(),
      .reference_steps = image.numel() * kernel.numel(),
      .peak_precision = dtype == DType::f32 ? PeakPrecision::f32 : PeakPrecision::f64};
}

std::vector<std::string> case_names(const StudyOptions& options) {
  if (!options.kernels.empty()) {
    std::vector<std::string> sizes = options.cases;
    if (sizes.empty()) sizes = {"1024x1024 f32"};
    if (options.cases.empty() && !options.quick) sizes.emplace_back("4096x4096 f32");
    return kernel_cases(sizes, options.kernels);
  }
  if (!options.cases.empty()) return options.cases;
  if (options.quick) return kernel_cases({"1024x1024 f32"}, {{3, 3}, {7, 7}});
  return kernel_cases({"1024x1024 f32", "1024x1024 f64", "4096x4096 f32", "4096x4096 f64"},
                      {{3, 3}, {5, 5}, {7, 7}});
}

}  // namespace

StudyReport study_correlation(const StudyOptions& options) {
  StudyReport report{
      .study = "correlation",
      .title = "2-D correlation",
      .machine = report_facts(),
      .introduction =
          "Every pixel becomes the weighted sum of its neighbors. The share of peak is relative to "
          "the limit that applies: the bandwidth of a copy, or the arithmetic of a large matrix "
          "product."};
  report.versions = version_legend("one block per row, one thread per column",
                                   "tiles in shared memory and registers, several pixels per thread");
  report = run_cases(std::move(report), case_names(options), make_case, options);
  for (std::string& finding : kernel_findings(report.rows)) report.findings.push_back(std::move(finding));
  if (!options.kernels.empty()) add_kernel_plots(report);
  return report;
}

}  // namespace tandem
