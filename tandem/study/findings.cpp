#include "tandem/study/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "tandem/ops/version.h"
#include "tandem/report/study_rows.h"
#include "tandem/study/compare_rows.h"
#include "tandem/study/thread_findings.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

// "all cores", or "2 threads" when threads were swept and the fastest row used 2.
std::string cores_of(const StudyRow& parallel) {
  if (!parallel.threads) return "all cores";
  return fmt::format("{} thread{}", *parallel.threads, *parallel.threads == 1 ? "" : "s");
}

std::string time_text(const StudyRow& row) {
  return format_number(row.value("median_ms"), Unit::milliseconds);
}

// The rows of one case by version; null where absent.
struct VersionRows {
  const StudyRow* reference = nullptr;
  const StudyRow* simd = nullptr;
  const StudyRow* parallel = nullptr;
  const StudyRow* simple = nullptr;
  const StudyRow* cuda = nullptr;
};

VersionRows rows_of(const std::vector<StudyRow>& rows, const std::string& name) {
  return {fastest_row(rows, name, "reference"), fastest_row(rows, name, "simd"),
          fastest_row(rows, name, "parallel"), fastest_row(rows, name, "cuda-simple"),
          fastest_row(rows, name, "cuda")};
}

void add_cpu_findings(const VersionRows& r, const std::string& name, std::vector<std::string>& findings) {
  if (r.simd && r.reference)
    findings.push_back(
        compare_speed(*r.simd, *r.reference) != Speed::slower
            ? fmt::format("SIMD on one core is {} scalar loops{} ({}).", relation_text(*r.simd, *r.reference),
                          overlap_text(*r.simd, *r.reference), name)
            : fmt::format("SIMD does not help here: {} on one core, scalar loops need {} ({}).",
                          time_text(*r.simd), time_text(*r.reference), name));
  if (!r.reference || !r.parallel) return;
  const std::string cores = cores_of(*r.parallel);
  findings.push_back(
      compare_speed(*r.parallel, *r.reference) != Speed::slower
          ? fmt::format("With SIMD and {} the CPU is {} with scalar loops on one core{} ({}).", cores,
                        relation_text(*r.parallel, *r.reference), overlap_text(*r.parallel, *r.reference),
                        name)
          : fmt::format("SIMD and {} do not help here: {}, scalar loops on one core need {} ({}).", cores,
                        time_text(*r.parallel), time_text(*r.reference), name));
}

// "still faster, 5.0 times the CPU's speed", with the copies, which have no spread of their own.
std::string speed_with_copies(const StudyRow& cuda, const StudyRow& cpu) {
  StudyRow copied = cuda;
  for (const Figure figure : {Figure("median_ms"), Figure("min_ms"), Figure("max_ms")})
    copied.figures[figure] = cuda.value("with_copies_ms");
  switch (compare_speed(copied, cpu)) {
    case Speed::faster:
      return fmt::format("still faster, {} the CPU's speed", times_text(times_as_fast(copied, cpu)));
    case Speed::slower:
      return fmt::format("slower than the CPU, which needs {}", time_text(cpu));
    case Speed::unclear:
      break;
  }
  return fmt::format("{} the CPU, which needs {}", relation_text(copied, cpu), time_text(cpu));
}

void add_gpu_findings(const VersionRows& r, const std::string& name, std::vector<std::string>& findings) {
  if (!r.cuda || !r.parallel) return;
  findings.push_back(
      compare_speed(*r.cuda, *r.parallel) != Speed::slower
          ? fmt::format("With data already on the device, the GPU is {} the CPU with {}{} ({}).",
                        relation_text(*r.cuda, *r.parallel), cores_of(*r.parallel),
                        overlap_text(*r.cuda, *r.parallel), name)
          : fmt::format(
                "Even with data already on the device, the GPU is slower than the CPU with {}: it needs "
                "{}, the CPU {} ({}).",
                cores_of(*r.parallel), time_text(*r.cuda), time_text(*r.parallel), name));
  if (r.simple && compare_speed(*r.cuda, *r.simple) == Speed::faster)
    findings.push_back(
        fmt::format("The tuned kernel is {} the simple one: the effect of launch configuration and memory "
                    "access pattern ({}).",
                    relation_text(*r.cuda, *r.simple), name));
  else if (r.simple)
    findings.push_back(fmt::format("The tuned kernel is {} the simple one{} ({}).",
                                   compare_speed(*r.cuda, *r.simple) == Speed::slower
                                       ? "slower than"
                                       : relation_text(*r.cuda, *r.simple),
                                   overlap_text(*r.cuda, *r.simple), name));
  if (!r.cuda->figures["with_copies_ms"]) return;
  const double share = 1 - r.cuda->value("median_ms") / r.cuda->value("with_copies_ms");
  findings.push_back(fmt::format(
      "Including the copies to the GPU and back it takes {} instead of {}: {:.0f} % of the time is "
      "copying, and the GPU is {} ({}).",
      format_number(r.cuda->value("with_copies_ms"), Unit::milliseconds), time_text(*r.cuda), 100 * share,
      speed_with_copies(*r.cuda, *r.parallel), name));
}

// Versions that are not Tandem's: a plugin's or another library's.
bool is_own(const std::string& version) {
  return std::ranges::none_of(all_versions, [&](Version own) { return name_of(own) == version; });
}

// "mine is 2.0 times as fast as parallel (…)." or "mine needs 4.10 ms, parallel 2.00 ms (…)."
std::string plugin_sentence(const StudyRow& row, const StudyRow& other, const std::string& name) {
  if (compare_speed(row, other) == Speed::slower)
    return fmt::format("{} needs {}, {} {}: {} as long ({}).", version_label(row), time_text(row),
                       version_label(other), time_text(other), times_text(times_as_fast(other, row)), name);
  return fmt::format("{} is {} {}{} ({}).", version_label(row), relation_text(row, other),
                     version_label(other), overlap_text(row, other), name);
}

// Each is compared with the scalar loops and with Tandem's fastest version on the same device.
void add_plugin_findings(const std::vector<StudyRow>& rows, const VersionRows& r, const std::string& name,
                         std::vector<std::string>& findings) {
  for (const std::string& version : versions_of(rows)) {
    const StudyRow* row = is_own(version) ? fastest_row(rows, name, version) : nullptr;
    if (!row) continue;
    const StudyRow* best = row->device == "cpu" ? r.parallel : r.cuda;
    if (r.reference) findings.push_back(plugin_sentence(*row, *r.reference, name));
    if (best) findings.push_back(plugin_sentence(*row, *best, name));
  }
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

std::vector<std::string> general_findings(const std::vector<StudyRow>& rows, int cpus) {
  std::map<std::string, int> measured;
  for (const StudyRow& row : rows) measured[row.case_name] += row.agrees && row.value("median_ms") > 0;
  std::string name;
  for (const StudyRow& row : rows)
    if (name.empty() || measured[row.case_name] >= measured[name]) name = row.case_name;
  std::vector<std::string> findings;
  if (name.empty()) return findings;

  const VersionRows r = rows_of(rows, name);
  add_cpu_findings(r, name, findings);
  add_gpu_findings(r, name, findings);
  add_plugin_findings(rows, r, name, findings);
  for (const std::string& version : versions_of(rows)) {
    std::vector<StudyRow> own;
    std::ranges::copy_if(rows, std::back_inserter(own),
                         [&](const StudyRow& row) { return row.version == version; });
    for (std::string& finding : thread_findings(own, name, version, cpus))
      findings.push_back(std::move(finding));
  }
  add_missing_reference(rows, findings);
  return findings;
}

}  // namespace tandem
