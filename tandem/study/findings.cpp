#include "tandem/study/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace tandem {
namespace {

std::string times(double ratio) {
  return ratio >= 10 ? fmt::format("{:.0f} times", ratio) : fmt::format("{:.1f} times", ratio);
}

constexpr double alike = 0.05;  // a smaller difference is not worth a word

std::string times_as_fast(double ratio) {
  return std::abs(ratio - 1) < alike ? "about as fast as" : times(ratio) + " as fast as";
}

// The rows of one case that can be compared.
struct CaseRows {
  const StudyRow *reference = nullptr, *parallel = nullptr, *simple = nullptr, *cuda = nullptr;
};

CaseRows rows_of(const std::vector<StudyRow>& rows, const std::string& name) {
  return {find_row(rows, name, "reference"), find_row(rows, name, "parallel"),
          find_row(rows, name, "cuda-simple"), find_row(rows, name, "cuda")};
}

void add_gpu_findings(const CaseRows& r, const std::string& name, std::vector<std::string>& findings) {
  if (!r.cuda || !r.parallel) return;
  const double gain = r.parallel->median_ms / r.cuda->median_ms;
  findings.push_back(
      gain >= 1 ? fmt::format("On data that is already there, the GPU is {} all CPU cores together ({}).",
                              times_as_fast(gain), name)
                : fmt::format(
                      "Even on data that is already there, the GPU loses to all CPU cores together: it needs "
                      "{:.3g} ms, they need {:.3g} ({}).",
                      r.cuda->median_ms, r.parallel->median_ms, name));
  if (r.simple)
    findings.push_back(
        fmt::format("The tuned kernel is {} the simple one: that is what the shape of the launch and "
                    "of the memory accesses is worth ({}).",
                    times_as_fast(r.simple->median_ms / r.cuda->median_ms), name));
  if (!r.cuda->with_copies_ms) return;
  const double share = 1 - r.cuda->median_ms / *r.cuda->with_copies_ms;
  const double against_cpu = r.parallel->median_ms / *r.cuda->with_copies_ms;
  findings.push_back(fmt::format(
      "With the copies to the GPU and back it takes {:.3g} ms instead of {:.3g}: {:.0f} % of the time is "
      "copying, and the GPU {} ({}).",
      *r.cuda->with_copies_ms, r.cuda->median_ms, 100 * share,
      against_cpu >= 1 ? fmt::format("still wins, {} the CPU's speed", times(against_cpu))
                       : fmt::format("loses to the CPU, which needs {:.3g} ms", r.parallel->median_ms),
      name));
}

void add_missing_reference(const std::vector<StudyRow>& rows, std::vector<std::string>& findings) {
  std::vector<std::string> cases;
  for (const StudyRow& row : rows) {
    const bool known = std::find(cases.begin(), cases.end(), row.case_name) != cases.end();
    const bool has_reference = std::any_of(rows.begin(), rows.end(), [&](const StudyRow& other) {
      return other.case_name == row.case_name && other.version == "reference";
    });
    if (!known && !has_reference) cases.push_back(row.case_name);
  }
  if (cases.empty()) return;
  findings.push_back(fmt::format(
      "`reference` was not run on {}: no speed-up is shown there, and results were checked against "
      "exact values of some hundred elements and against each other.",
      fmt::join(cases, ", ")));
}

}  // namespace

const StudyRow* find_row(const std::vector<StudyRow>& rows, const std::string& case_name,
                         const std::string& version) {
  const StudyRow* best = nullptr;  // of several thread counts or GPUs the fastest
  for (const StudyRow& row : rows)
    if (row.case_name == case_name && row.version == version && row.agrees && row.median_ms > 0 &&
        (!best || row.median_ms < best->median_ms))
      best = &row;
  return best;
}

std::vector<std::string> general_findings(const std::vector<StudyRow>& rows) {
  std::map<std::string, int> measured;
  for (const StudyRow& row : rows) measured[row.case_name] += row.agrees && row.median_ms > 0;
  std::string name;
  for (const StudyRow& row : rows)
    if (name.empty() || measured[row.case_name] >= measured[name]) name = row.case_name;
  std::vector<std::string> findings;
  if (name.empty()) return findings;

  const CaseRows r = rows_of(rows, name);
  if (r.reference && r.parallel)
    findings.push_back(
        r.parallel->median_ms * (1 - alike) < r.reference->median_ms
            ? fmt::format("With SIMD and all cores the CPU is {} with plain loops on one ({}).",
                          times_as_fast(r.reference->median_ms / r.parallel->median_ms), name)
            : fmt::format("Here SIMD and all cores do not pay: {:.3g} ms, where plain loops on one core need "
                          "{:.3g} ({}).",
                          r.parallel->median_ms, r.reference->median_ms, name));
  add_gpu_findings(r, name, findings);

  const StudyRow *fewest = nullptr, *most = nullptr;
  for (const StudyRow& row : rows)
    if (row.case_name == name && row.threads && row.agrees) {
      if (!fewest || row.threads < fewest->threads) fewest = &row;
      if (!most || row.threads > most->threads) most = &row;
    }
  if (fewest && fewest->threads < most->threads) {
    const StudyRow &first = *fewest, &last = *most;
    const double gain = first.median_ms / last.median_ms;
    const double possible = static_cast<double>(*last.threads) / *first.threads;
    findings.push_back(
        fmt::format("With {1} threads `parallel` is {2} with {0}: {3:.0f} % of what the threads "
                    "could give ({4}).",
                    *first.threads, *last.threads, times_as_fast(gain), 100 * gain / possible, name));
  }
  add_missing_reference(rows, findings);
  return findings;
}

}  // namespace tandem
