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

constexpr double negligible = 0.05;  // smaller differences are not reported

std::string times_as_fast(double ratio) {
  return std::abs(ratio - 1) < negligible ? "about as fast as" : times(ratio) + " as fast as";
}

// "all cores", or "2 threads" when threads were swept and the fastest row used 2.
std::string cores_of(const StudyRow& parallel) {
  if (!parallel.threads) return "all cores";
  return fmt::format("{} thread{}", *parallel.threads, *parallel.threads == 1 ? "" : "s");
}

// The rows of one case by version; null where absent.
struct VersionRows {
  const StudyRow* reference = nullptr;
  const StudyRow* parallel = nullptr;
  const StudyRow* simple = nullptr;
  const StudyRow* cuda = nullptr;
};

VersionRows rows_of(const std::vector<StudyRow>& rows, const std::string& name) {
  return {find_row(rows, name, "reference"), find_row(rows, name, "parallel"),
          find_row(rows, name, "cuda-simple"), find_row(rows, name, "cuda")};
}

void add_cpu_finding(const VersionRows& r, const std::string& name, std::vector<std::string>& findings) {
  if (!r.reference || !r.parallel) return;
  const double gain = r.reference->value("median_ms") / r.parallel->value("median_ms");
  findings.push_back(
      gain > 1 - negligible
          ? fmt::format("With SIMD and {} the CPU is {} with scalar loops on one core ({}).",
                        cores_of(*r.parallel), times_as_fast(gain), name)
          : fmt::format("SIMD and {} do not help here: {:.3g} ms, scalar loops on one core need {:.3g} ({}).",
                        cores_of(*r.parallel), r.parallel->value("median_ms"),
                        r.reference->value("median_ms"), name));
}

void add_gpu_findings(const VersionRows& r, const std::string& name, std::vector<std::string>& findings) {
  if (!r.cuda || !r.parallel) return;
  const double gain = r.parallel->value("median_ms") / r.cuda->value("median_ms");
  findings.push_back(
      gain > 1 - negligible
          ? fmt::format("With data already on the device, the GPU is {} the CPU with {} ({}).",
                        times_as_fast(gain), cores_of(*r.parallel), name)
          : fmt::format(
                "Even with data already on the device, the GPU is slower than the CPU with {}: it needs "
                "{:.3g} ms, the CPU {:.3g} ({}).",
                cores_of(*r.parallel), r.cuda->value("median_ms"), r.parallel->value("median_ms"), name));
  if (r.simple)
    findings.push_back(
        fmt::format("The tuned kernel is {} the simple one: the effect of launch configuration and memory "
                    "access pattern ({}).",
                    times_as_fast(r.simple->value("median_ms") / r.cuda->value("median_ms")), name));
  if (!r.cuda->figures["with_copies_ms"]) return;
  const double share = 1 - r.cuda->value("median_ms") / r.cuda->value("with_copies_ms");
  const double against_cpu = r.parallel->value("median_ms") / r.cuda->value("with_copies_ms");
  findings.push_back(fmt::format(
      "Including the copies to the GPU and back it takes {:.3g} ms instead of {:.3g}: {:.0f} % of the time "
      "is copying, and the GPU is {} ({}).",
      r.cuda->value("with_copies_ms"), r.cuda->value("median_ms"), 100 * share,
      against_cpu >= 1
          ? fmt::format("still faster, {} the CPU's speed", times(against_cpu))
          : fmt::format("slower than the CPU, which needs {:.3g} ms", r.parallel->value("median_ms")),
      name));
}

void add_sweep_finding(const std::vector<StudyRow>& rows, const std::string& name,
                       std::vector<std::string>& findings) {
  const StudyRow* fewest = nullptr;
  const StudyRow* most = nullptr;
  for (const StudyRow& row : rows)
    if (row.case_name == name && row.threads && row.agrees) {
      if (!fewest || row.threads < fewest->threads) fewest = &row;
      if (!most || row.threads > most->threads) most = &row;
    }
  if (!fewest || fewest->threads == most->threads) return;
  const double gain = fewest->value("median_ms") / most->value("median_ms");
  const double possible = static_cast<double>(*most->threads) / *fewest->threads;
  findings.push_back(
      gain > 1 - negligible
          ? fmt::format("With {} threads parallel is {} with {}: {:.0f} % of linear scaling ({}).",
                        *most->threads, times_as_fast(gain), *fewest->threads, 100 * gain / possible, name)
          : fmt::format(
                "With {} threads parallel is slower than with {}, {:.3g} ms versus {:.3g}: the work is "
                "too small to split, or the cores were busy ({}).",
                *most->threads, *fewest->threads, most->value("median_ms"), fewest->value("median_ms"),
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
  findings.push_back(
      fmt::format("The reference was not run on {}. No speed-up is shown there; results were checked against "
                  "exact values of a few hundred elements and against each other.",
                  fmt::join(cases, ", ")));
}

}  // namespace

const StudyRow* find_row(const std::vector<StudyRow>& rows, const std::string& case_name,
                         const std::string& version) {
  const StudyRow* best = nullptr;  // the fastest of several thread counts or GPUs
  for (const StudyRow& row : rows)
    if (row.case_name == case_name && row.version == version && row.agrees && row.value("median_ms") > 0 &&
        (!best || row.value("median_ms") < best->value("median_ms")))
      best = &row;
  return best;
}

std::vector<std::string> general_findings(const std::vector<StudyRow>& rows) {
  std::map<std::string, int> measured;
  for (const StudyRow& row : rows) measured[row.case_name] += row.agrees && row.value("median_ms") > 0;
  std::string name;
  for (const StudyRow& row : rows)
    if (name.empty() || measured[row.case_name] >= measured[name]) name = row.case_name;
  std::vector<std::string> findings;
  if (name.empty()) return findings;

  const VersionRows r = rows_of(rows, name);
  add_cpu_finding(r, name, findings);
  add_gpu_findings(r, name, findings);
  add_sweep_finding(rows, name, findings);
  add_missing_reference(rows, findings);
  return findings;
}

}  // namespace tandem
