// The tasks max, xxt and correlation. Their cases are those of the studies.
#include "tandem/core/check.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/correlate.h"
#include "tandem/ops/maximum.h"
#include "tandem/ops/random.h"
#include "tandem/ops/xxt.h"
#include "tandem/study/grade/task_cases.h"
#include "tandem/study/studies.h"

namespace tandem {
namespace {

CaseName parse(const char* study, const std::string& name) {
  CaseName parsed = parse_case(studies().get(study), name);
  check(parsed.type != "tf32", "[study {}] expected another type than tf32, got \"{}\"", study, name);
  return parsed;
}

// Stricter than an arithmetic of fewer digits can meet: TF32 and half precision are off by 1e-4 and more.
double tolerance_of(DType dtype) {
  return dtype == DType::f64 ? 1e-12 : 1e-5;
}

// Negative numbers too: a maximum that starts at 0 is wrong.
Tensor sample_values(const Shape& shape, DType dtype, std::uint64_t seed, std::uint64_t stream) {
  if (is_floating(dtype)) return uniform(shape, -1, 1, {.seed = seed, .stream = stream, .dtype = dtype});
  const std::int64_t low = dtype == DType::u8 ? 0 : -100000, high = dtype == DType::u8 ? 256 : 100000;
  return random_integers(shape, low, high, {.seed = seed, .stream = stream, .dtype = dtype});
}

}  // namespace

TaskCase make_max_case(const std::string& name) {
  const CaseName parsed = parse("max", name);
  const DType dtype = parse_dtype(parsed.type);
  const ArrayFormat format = array_format(dtype, parsed.rows, parsed.columns);
  TaskCase made{.name = name, .format = {.function = "max", .inputs = {format, format}, .outputs = {format}}};
  check_case_size(made);
  const Shape shape{parsed.rows, parsed.columns};
  made.inputs = [shape, dtype](std::uint64_t seed) {
    return std::vector{sample_values(shape, dtype, seed, 0), sample_values(shape, dtype, seed, 1)};
  };
  made.expected = [](std::span<const Tensor> in) {
    return std::vector{maximum(in[0], in[1], Version::parallel)};
  };
  made.reference = [](std::span<const Tensor> in, Version version) { return maximum(in[0], in[1], version); };
  return made;
}

TaskCase make_xxt_case(const std::string& name) {
  const CaseName parsed = parse("xxt", name);
  const DType dtype = parse_dtype(parsed.type);
  TaskCase made{.name = name,
                .format = {.function = "xxt",
                           .inputs = {array_format(dtype, parsed.rows, parsed.columns)},
                           .outputs = {array_format(dtype, parsed.rows, parsed.rows)}},
                .tolerance = tolerance_of(dtype)};
  check_case_size(made);
  const Shape shape{parsed.rows, parsed.columns};
  made.inputs = [shape, dtype](std::uint64_t seed) {
    return std::vector{sample_values(shape, dtype, seed, 0)};
  };
  made.expected = [](std::span<const Tensor> in) {
    return std::vector{xxt(cast(in[0], DType::f64), Version::parallel)};
  };
  made.reference = [](std::span<const Tensor> in, Version version) { return xxt(in[0], version); };
  return made;
}

TaskCase make_correlation_case(const std::string& name) {
  const CaseName parsed = parse("correlation", name);
  const DType dtype = parse_dtype(parsed.type);
  const ArrayFormat image = array_format(dtype, parsed.rows, parsed.columns);
  const ArrayFormat kernel = array_format(dtype, parsed.kernel_rows, parsed.kernel_columns);
  TaskCase made{.name = name,
                .format = {.function = "correlation", .inputs = {image, kernel}, .outputs = {image}},
                .tolerance = tolerance_of(dtype)};
  check_case_size(made);
  const Shape image_shape{parsed.rows, parsed.columns};
  const Shape kernel_shape{parsed.kernel_rows, parsed.kernel_columns};
  made.inputs = [image_shape, kernel_shape, dtype](std::uint64_t seed) {
    return std::vector{sample_values(image_shape, dtype, seed, 0),
                       sample_values(kernel_shape, dtype, seed, 1)};
  };
  made.expected = [](std::span<const Tensor> in) {
    return std::vector{correlate(cast(in[0], DType::f64), cast(in[1], DType::f64), Version::parallel)};
  };
  made.reference = [](std::span<const Tensor> in, Version version) {
    return correlate(in[0], in[1], version);
  };
  return made;
}

}  // namespace tandem
