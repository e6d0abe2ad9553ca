// The result of a study as plain data: one row per measurement, machine facts, findings and plots.
#pragma once

#include <string>
#include <vector>

#include "tandem/report/fact.h"
#include "tandem/report/plot.h"
#include "tandem/report/study_row.h"

namespace tandem {

struct StudyReport {
  std::string study;  // "max": the name on the command line
  std::string title;  // "Element-wise maximum"
  std::vector<Fact> machine;
  std::vector<Fact> provenance;  // provenance(), provenance.h
  std::vector<Fact> versions;    // what each version is, in plain words
  std::string introduction;      // what was computed and how
  std::vector<Fact> settings{};  // what was trained, of a study that trains: data set, recipe, network
  std::vector<StudyRow> rows;
  std::vector<std::string> findings;  // sentences about the measurements
  std::vector<Plot> plots;            // usually standard_plots(rows), study_plots.h
};

}  // namespace tandem
