// Runs one case of a part: checks every result, and takes the times of submission and reference in turns.
#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/philox.h"
#include "tandem/report/grade_report.h"
#include "tandem/study/grade/profile.h"
#include "tandem/study/grade/score.h"
#include "tandem/study/grade/task.h"
#include "tandem/study/plugin/kernel_process.h"

namespace tandem {

// Seeds of inputs, a new one for every repetition.
class HiddenSeeds {
 public:
  explicit HiddenSeeds(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t next() {
    const Words4 words = random_block(seed_, 0, count_++);
    return std::uint64_t{words.word[0]} << 32 | words.word[1];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

struct CaseRun {
  std::string problem;  // empty: every result was correct
  std::vector<GradePicture> pictures;
  bool failed_while_timed = false;
  std::optional<SpeedResult> speed;  // of a timed case that is correct
  bool on_gpu = false;               // timed against the CUDA reference
};

struct CaseSettings {
  KernelProcessOptions process;
  Version reference = Version::parallel;
  Version cuda_reference = Version::cuda_simple;
  int threads = 1;
  double max_spread = 0.15;   // above it, more rounds are measured
  double time_left_s = 60;    // bounds the measurement
  double measured_ms = 1500;  // of both versions together; up to three times as long when it is noisy
};

// A phrase about the plugin begins with its `file_name`. Throws Error for failures of this machine only.
CaseRun run_graded_case(const PluginFile& plugin, const std::string& file_name, const TaskCase& task_case,
                        bool timed, const CaseSettings& settings, HiddenSeeds& seeds);

}  // namespace tandem
