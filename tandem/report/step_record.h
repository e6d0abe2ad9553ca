// What was measured in the steps of about a second: a row of steps.csv, and the curves of all rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/report/curve.h"
#include "tandem/report/epoch_record.h"
#include "tandem/report/number_rows.h"

namespace tandem {

struct StepRecord {
  std::int64_t step = 0;       // the last of them, counted from 1 over all epochs; 0: none yet
  std::int64_t epoch = 0;      // from 1
  double loss = not_measured;  // mean over their samples
  double learning_rate = not_measured;
  double samples_per_second = not_measured;
  double waited_share = not_measured;      // of their time, waiting for images
  double cpu_cores = not_measured;         // that the process and its workers kept busy
  double memory_mb = not_measured;         // resident memory of the process
  double device_memory_mb = not_measured;  // that the process has taken on its GPU
  double gpu_share = not_measured;         // of the time in which the GPU computed, for whatever process
  double gpu_memory_mb = not_measured;     // of the GPU that all processes have taken
};

// A figure of a record, which is a column of steps.csv.
struct StepField {
  std::string_view key;
  double StepRecord::*member;
  int decimals;  // in steps.csv; -1: as many as the value has
};
inline constexpr std::array step_fields{
    StepField{"loss", &StepRecord::loss, -1},
    StepField{"learning_rate", &StepRecord::learning_rate, -1},
    StepField{"samples_per_second", &StepRecord::samples_per_second, 1},
    StepField{"waited_share", &StepRecord::waited_share, 4},
    StepField{"memory_mb", &StepRecord::memory_mb, 1},
    StepField{"device_memory_mb", &StepRecord::device_memory_mb, 1},
    StepField{"cpu_cores", &StepRecord::cpu_cores, 2},
    StepField{"gpu_share", &StepRecord::gpu_share, 2},
    StepField{"gpu_memory_mb", &StepRecord::gpu_memory_mb, 1},
};

// Lines of steps.csv, each with its end. What was not measured is empty.
std::string steps_csv_header();
std::string steps_csv_row(const StepRecord& record);
// The record of the last row of a steps.csv, also of one with fewer columns.
StepRecord step_record(const NumberRows& rows);

// Of a curve on a page: about one per pixel.
inline constexpr std::size_t max_page_buckets = 600;

// A curve of each figure over the steps.
class StepCurves {
 public:
  StepCurves() = default;
  explicit StepCurves(std::size_t max_buckets);  // of each curve

  void add(const StepRecord& record);
  const Curve& of(double StepRecord::*member) const;
  bool empty() const;

 private:
  std::array<Curve, step_fields.size()> curves_;
};

}  // namespace tandem
