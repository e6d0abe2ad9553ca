// One computation on one input in all its versions: what run_case() needs to check and measure it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tandem/ops/version.h"
#include "tandem/report/study_report.h"
#include "tandem/study/options.h"
#include "tandem/study/peaks.h"
#include "tandem/study/study_progress.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

struct StudyCase {
  std::string name;            // "1000x1000 i32"
  std::string function;        // of plugins: "max"
  std::vector<Tensor> inputs;  // on the CPU
  std::function<Tensor(std::span<const Tensor> inputs, Version version)> compute;
  // The exact value of one element of the result, computed with plain loops.
  std::function<double(std::int64_t element)> exact;
  double tolerance = 0;              // of the difference, relative to the maximum magnitude of the result
  std::int64_t bytes = 0;            // minimum bytes read and written
  std::int64_t operations = 0;       // floating-point operations the result needs; 0: not counted
  std::int64_t reference_steps = 0;  // iterations of the reference's innermost loop
  std::optional<PeakPrecision> peak_precision;  // selects the arithmetic peak for comparison
};

// Throws Error when inputs and result with `elements` elements in total do not fit this machine's memory.
void check_fits(const std::string& study, const std::string& name, double elements);

// A version may exceed the measured peak, for example when it writes less than a copy. It then becomes the
// peak for the other rows of its device, so that no share exceeds 1.
void bound_shares(std::vector<StudyRow>& rows);

// Checks every version against `reference` (or, if that would take too long, against exact values of a few
// hundred elements and against each other), then measures it. After the time limit, versions are left out.
std::vector<StudyRow> run_case(const StudyCase& study_case, const StudyOptions& options,
                               StudyProgress& progress);

// What the versions are, in plain words, with what is special about the two CUDA kernels.
std::vector<Fact> version_legend(const std::string& cuda_simple, const std::string& cuda);

// Completes the report with the rows, findings and plots of all named cases.
StudyReport run_cases(StudyReport report, const std::vector<std::string>& names,
                      StudyCase (*make_case)(const std::string& name, const StudyOptions& options),
                      const StudyOptions& options);

}  // namespace tandem
