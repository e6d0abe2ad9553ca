#include "tandem/study/study_progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <span>

namespace tandem {

bool StudyProgress::start(const std::string& what) {
  if (is_over()) {
    leave_out(what);
    return false;
  }
  report(what);
  return true;
}

void StudyProgress::report(const std::string& what) {
  started_ = true;
  if (options_.on_progress) options_.on_progress(what);
}

double StudyProgress::left_ms() const {
  if (options_.time_limit_s <= 0) return std::numeric_limits<double>::infinity();
  return std::max(0.0, 1e3 * options_.time_limit_s - watch_.elapsed_ms());
}

void StudyProgress::add_finding(const std::string& sentence) {
  if (std::ranges::find(added_, sentence) == added_.end()) added_.push_back(sentence);
}

std::vector<std::string> StudyProgress::findings() const {
  std::vector<std::string> sentences = added_;
  if (left_out_.empty()) return sentences;
  constexpr std::size_t max_named = 6;
  const std::size_t named = std::min(left_out_.size(), max_named);
  sentences.push_back(
      fmt::format("Left out after the time limit of {:g} s: {}{}.", options_.time_limit_s,
                  fmt::join(std::span(left_out_).first(named), "; "),
                  left_out_.size() > named ? fmt::format(" and {} more", left_out_.size() - named) : ""));
  return sentences;
}

}  // namespace tandem
