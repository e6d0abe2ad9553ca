// Findings about sweeps over threads or workers: how well they scale, and what more of them than CPUs do.
#pragma once

#include <string>
#include <vector>

#include "tandem/report/study_row.h"

namespace tandem {

// The correct rows of a case whose threads were swept, by increasing number of threads.
std::vector<const StudyRow*> swept_rows(const std::vector<StudyRow>& rows, const std::string& case_name);

// About one case: "With 4 threads parallel is …". `what` ran with the threads; `cpus` is the number of CPUs
// they had. Empty if the case was not swept.
std::vector<std::string> thread_findings(const std::vector<StudyRow>& rows, const std::string& case_name,
                                         const std::string& what, int cpus);

// The row of a sweep that was measured with this number of threads or workers.
struct SweptRow {
  const StudyRow* row = nullptr;
  int count = 0;
};

// "With 8 threads on 2 CPUs, parallel is slower than with 2, …: oversubscribed, the threads take turns on the
// CPUs". `unit` is what is counted, `most` exceeds the CPUs. Nothing is compared if both counts are the same.
std::string oversubscription_text(const SweptRow& base, const SweptRow& most, const std::string& unit,
                                  const std::string& what, int cpus);

}  // namespace tandem
