#include "tandem/study/max.h"

#include <algorithm>

#include "tandem/core/on_dtype.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/maximum.h"
#include "tandem/ops/random.h"
#include "tandem/study/machine_report.h"
#include "tandem/study/studies.h"
#include "tandem/study/study_case.h"

namespace tandem {
namespace {

StudyCase make_case(const std::string& name, const StudyOptions& options) {
  const CaseName parsed = parse_case(studies().get("max"), name);
  check_fits("max", name, 3.0 * static_cast<double>(parsed.rows) * static_cast<double>(parsed.columns));
  const DType dtype = parse_dtype(parsed.type);
  const Shape shape{parsed.rows, parsed.columns};
  const auto sample = [&](std::uint64_t stream) {
    return cast(random_integers(shape, 0, 256, {.seed = options.seed, .stream = stream, .dtype = DType::i32}),
                dtype);
  };
  const Tensor a = sample(0), b = sample(1);
  return {
      .name = name,
      .function = "max",
      .inputs = {a, b},
      .compute = [](std::span<const Tensor> in, Version version) { return maximum(in[0], in[1], version); },
      .exact =
          [a, b](std::int64_t element) {
            return on_dtype(
                TypeList<float, double, std::uint8_t, std::int32_t, std::int64_t>{}, a.dtype(), "max",
                [&]<class T>() {
                  return static_cast<double>(std::max(a.data<T>()[element], b.data<T>()[element]));
                });
          },
      .tolerance = 0,
      .bytes = 3 * shape.numel() * static_cast<std::int64_t>(size_of(dtype)),
      .reference_steps = shape.numel()};
}

}  // namespace

StudyReport study_max(const StudyOptions& options) {
  StudyReport report{.study = "max",
                     .title = "Element-wise maximum",
                     .machine = report_facts(),
                     .introduction =
                         "C[i][j] = max(A[i][j], B[i][j]) on integers from 0 to 255. The computation is "
                         "memory-bound, so this shows how fast each version moves memory; the peak is a copy "
                         "of the same number of bytes, or the fastest version if that is faster."};
  report.versions = version_legend("one block per row, one thread per column",
                                   "several elements per thread in one wide load");
  std::vector<std::string> names = options.cases;
  if (names.empty()) names = {"1000x1000 i32"};
  if (options.cases.empty() && !options.quick)
    names.insert(names.end(), {"1000x1000 i64", "4096x4096 i32", "8192x8192 i32", "8192x8192 f32"});
  return run_cases(std::move(report), names, make_case, options);
}

}  // namespace tandem
