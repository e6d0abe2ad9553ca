// The result of a study as plain data: one row per measurement, machine facts, findings and plots.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tandem/report/fact.h"
#include "tandem/report/plot.h"

namespace tandem {

struct StudyRow {
  std::string case_name;  // "1000×1000 i32"; rows of the same case are compared
  std::string version;    // "reference", "parallel", "cuda-simple", "cuda"; for training runs "cpu" or "cuda"
  std::string device;     // "cpu", "cuda:0"
  double median_ms = 0;
  double min_ms = 0;
  double max_ms = 0;
  std::optional<double> with_copies_ms{};  // median with the copies to the device and back
  std::optional<double> speedup{};         // over the `reference` of the case; for training, over the CPU
  std::optional<double> gb_per_s{};
  std::optional<double> gflop_per_s{};
  std::optional<double> share_of_peak{};  // 1 is this machine's measured peak
  bool agrees = true;                     // the result equals the reference's, within the tolerance
  std::optional<double> max_error{};
  std::optional<int> threads{};           // set when the thread count was swept
  std::optional<double> samples_per_s{};  // for training; the times are then per epoch
  std::string engine{};                   // training engine: "perceptron on the CPU, 2 threads"
  std::optional<int> workers{};           // augmentation workers
  std::optional<double> waited_ms{};      // time per epoch the trainer waited for images
  std::optional<double> efficiency{};     // samples_per_s per worker, relative to one worker
  std::optional<int> epoch{};             // after which the accuracy was measured
  std::optional<double> accuracy{};       // mean over seeds, in 0..1; such rows are not checked for agreement
  std::optional<double> accuracy_spread{};  // standard deviation over seeds
  std::optional<double> lead{};             // accuracy minus that of `plain` in the same case and epoch
  std::optional<double> lead_spread{};
  bool in_table = true;  // false: only in the JSON, to keep tables short
};

struct StudyReport {
  std::string study;  // "max": the name on the command line
  std::string title;  // "Element-wise maximum"
  std::vector<Fact> machine;
  std::string introduction;  // what was computed and how
  std::vector<StudyRow> rows;
  std::vector<std::string> findings;  // sentences about the measurements
  std::vector<Plot> plots;            // usually standard_plots(rows), study_plots.h
};

}  // namespace tandem
