// What a study found, as plain data: a row a measurement, facts about the machine, sentences and plots.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tandem/report/fact.h"
#include "tandem/report/plot.h"

namespace tandem {

struct StudyRow {
  std::string case_name;  // what was computed: "1000×1000 i32"; rows of one case are compared with each other
  std::string version;    // "reference", "parallel", "cuda-simple", "cuda"; "cpu" where a training ran
  std::string device;     // "cpu", "cuda:0"
  double median_ms = 0;
  double min_ms = 0;
  double max_ms = 0;
  std::optional<double> with_copies_ms{};  // median with the copies to the device and back
  std::optional<double> speedup{};         // over the case's `reference`; of a training, over the CPU
  std::optional<double> gb_per_s{};
  std::optional<double> gflop_per_s{};
  std::optional<double> share_of_peak{};  // 1 is this machine's measured peak
  bool agrees = true;                     // the result equals the reference's, within the tolerance
  std::optional<double> max_error{};
  std::optional<int> threads{};             // where the number of threads was swept
  std::optional<double> samples_per_s{};    // of a training, whose times are those of an epoch
  std::string engine{};                     // what trained: "perceptron on the CPU, 2 threads"
  std::optional<int> workers{};             // that augmented
  std::optional<double> waited_ms{};        // of an epoch, for their images
  std::optional<double> efficiency{};       // samples_per_s a worker, relative to one worker
  std::optional<int> epoch{};               // after which the accuracy was measured
  std::optional<double> accuracy{};         // mean over seeds, a share of 1; rows with one are not compared
  std::optional<double> accuracy_spread{};  // standard deviation over seeds
  std::optional<double> lead{};             // of the accuracy over the case's `plain`, at the same epoch
  std::optional<double> lead_spread{};
  bool in_table = true;  // or too many for people: in JSON only
};

struct StudyReport {
  std::string study;  // "max": the name a user types
  std::string title;  // "Element-wise maximum"
  std::vector<Fact> machine;
  std::string introduction;  // a sentence that says what was computed
  std::vector<StudyRow> rows;
  std::vector<std::string> findings;  // sentences: why the GPU wins or loses, what the copies cost
  std::vector<Plot> plots;            // standard_plots(rows) in study_plots.h draws the usual ones
};

}  // namespace tandem
