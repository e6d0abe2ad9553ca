// Progress and time limit of one run of a study.
#pragma once

#include <string>
#include <vector>

#include "tandem/core/clock.h"
#include "tandem/study/options.h"

namespace tandem {

// Starts its clock when it is made. A study calls start() before each of its measurements.
class StudyProgress {
 public:
  explicit StudyProgress(const StudyOptions& options) : options_(options) {}

  // Reports that `what` is measured next. After the time limit it returns false instead and `what` is left
  // out; the first measurement always runs.
  bool start(const std::string& what);

  // The two halves of start(), for a study that decides itself.
  void report(const std::string& what);
  void leave_out(const std::string& what) { left_out_.push_back(what); }

  // A sentence for the findings; the same one only once.
  void add_finding(const std::string& sentence);

  // Whether something was measured and the time limit has passed.
  bool is_over() const { return started_ && left_ms() == 0; }

  // Until the time limit, at least 0; infinite without one.
  double left_ms() const;

  // "Left out after the time limit of 60 s: …", if something was, and the added sentences.
  std::vector<std::string> findings() const;

 private:
  const StudyOptions& options_;
  Stopwatch watch_;
  bool started_ = false;
  std::vector<std::string> left_out_, added_;
};

}  // namespace tandem
