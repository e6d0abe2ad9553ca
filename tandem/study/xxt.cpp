#include "tandem/study/xxt.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/random.h"
#include "tandem/ops/xxt.h"
#include "tandem/study/machine_report.h"
#include "tandem/study/studies.h"
#include "tandem/study/study_case.h"

namespace tandem {
namespace {

StudyCase make_case(const std::string& name, const StudyOptions& options) {
  const CaseName parsed = parse_case(studies().get("xxt"), name);
  check_fits("xxt", name,
             (static_cast<double>(parsed.rows) + static_cast<double>(parsed.columns)) *
                 static_cast<double>(parsed.rows));
  const bool tf32 = parsed.type == "tf32";
  const DType dtype = tf32 ? DType::f32 : parse_dtype(parsed.type);
  const Tensor x = uniform({parsed.rows, parsed.columns}, -1, 1, {.seed = options.seed, .dtype = dtype});
  const auto precision = tf32 ? MatmulPrecision::tf32 : MatmulPrecision::fp32;
  const std::int64_t n = parsed.rows, k = parsed.columns;
  return {.name = name,
          .function = "xxt",
          .inputs = {x},
          .compute = [precision](std::span<const Tensor> in,
                                 Version version) { return xxt(in[0], version, precision); },
          .exact =
              [x, n, k](std::int64_t element) {
                return on_dtype(TypeList<float, double>{}, x.dtype(), "xxt", [&]<class T>() {
                  const T* a = x.data<T>() + element / n * k;
                  const T* b = x.data<T>() + element % n * k;
                  double sum = 0;
                  for (std::int64_t p = 0; p < k; ++p)
                    sum += static_cast<double>(a[p]) * static_cast<double>(b[p]);
                  return sum;
                });
              },
          .tolerance = tf32                  ? 2e-3
                       : dtype == DType::f32 ? 1e-5
                                             : 1e-12,
          .bytes = (n * k + n * n) * static_cast<std::int64_t>(size_of(dtype)),
          .operations = n * (n + 1) * k,
          .reference_steps = n * n * k,
          .peak_precision = tf32                  ? PeakPrecision::tf32
                            : dtype == DType::f32 ? PeakPrecision::f32
                                                  : PeakPrecision::f64};
}

}  // namespace

StudyReport study_xxt(const StudyOptions& options) {
  StudyReport report{.study = "xxt",
                     .title = "X·Xᵀ",
                     .machine = report_facts(),
                     .introduction =
                         "The product of X with its transpose. GFLOP/s counts only the operations the "
                         "symmetric result needs, one triangle; reference and cuda-simple compute both "
                         "triangles, so they show at most half of what they do. The peak is a large general "
                         "matrix product."};
  report.versions =
      version_legend("one block of 1024 threads, whatever the size",
                     "tiles in shared memory and registers; one triangle is computed and mirrored");
  std::vector<std::string> names = options.cases;
  if (names.empty())
    names = options.quick ? std::vector<std::string>{"500x500 f32"}
                          : std::vector<std::string>{"1000x1000 f32", "1000x1000 f64", "4096x512 f32"};
  if (options.cases.empty() && cuda_device_count() > 0 && !options.quick)
    names.insert(names.end(), {"4096x4096 f32", "4096x4096 tf32"});
  return run_cases(std::move(report), names, make_case, options);
}

}  // namespace tandem
