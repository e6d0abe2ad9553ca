#include "tandem/report/interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tandem {

Interval wilson_interval(double share, std::int64_t count) {
  if (std::isnan(share)) return {share, share};
  if (count <= 0) return {};
  constexpr double z = 1.959963984540054;  // 97.5 % of a normal distribution lies below it
  const double n = static_cast<double>(count), z2 = z * z / n;
  const double center = (share + z2 / 2) / (1 + z2);
  const double half = z / (1 + z2) * std::sqrt(share * (1 - share) / n + z2 / (4 * n));
  return {std::max(center - half, 0.0), std::min(center + half, 1.0)};
}

namespace {

std::string accuracy_text(double share, std::int64_t count, const char* name) {
  if (!std::isfinite(share)) return "–";
  const std::string text = fmt::format("{:.2f} %", 100 * share);
  if (count <= 0) return text;
  const Interval interval = wilson_interval(share, count);
  return fmt::format("{} ({}{:.2f}–{:.2f})", text, name, 100 * interval.low, 100 * interval.high);
}

}  // namespace

std::string format_accuracy(double share, std::int64_t count) {
  return accuracy_text(share, count, "");
}

std::string describe_accuracy(double share, std::int64_t count) {
  return accuracy_text(share, count, "95 % interval ");
}

std::string format_interval(const Interval& interval) {
  return fmt::format("{:.2f}–{:.2f} %", 100 * interval.low, 100 * interval.high);
}

}  // namespace tandem
