#include "tandem/nn/activation_histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"

namespace tandem::detail {
namespace {

constexpr std::size_t bins = 4096;  // at least half of them are in use
constexpr double first_range = 0x1p-20;

float largest_magnitude(std::span<const float> values) {
  float max = 0;
  bool is_finite = true;
  for (const float value : values) {
    const float magnitude = std::abs(value);
    is_finite &= magnitude <= std::numeric_limits<float>::max();
    max = std::max(max, magnitude);
  }
  check(is_finite, "[quantize] expected finite activations, got infinity or NaN");
  return max;
}

// Kullback–Leibler divergence of the first `used` bins, with all others in the last of them, from the same
// rounded to `levels` steps. Bins without a value stay empty.
double divergence(std::span<const std::int64_t> counts, std::size_t used, std::int64_t levels,
                  std::int64_t total) {
  std::int64_t outliers = 0;
  for (const std::int64_t count : counts.subspan(used)) outliers += count;
  std::int64_t kept = 0;
  for (const std::int64_t count : counts.first(used)) kept += count;
  if (kept == 0) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (std::int64_t level = 0; level < levels; ++level) {
    const auto first = static_cast<std::size_t>(level) * used / static_cast<std::size_t>(levels),
               last = static_cast<std::size_t>(level + 1) * used / static_cast<std::size_t>(levels);
    std::int64_t inside = 0, filled = 0;
    for (std::size_t i = first; i < last; ++i) inside += counts[i], filled += counts[i] > 0 ? 1 : 0;
    const double rounded =
        filled == 0 ? 0
                    : static_cast<double>(inside) / static_cast<double>(filled) / static_cast<double>(kept);
    for (std::size_t i = first; i < last; ++i) {
      const std::int64_t count = counts[i] + (i + 1 == used ? outliers : 0);
      if (count == 0) continue;
      const double share = static_cast<double>(count) / static_cast<double>(total);
      // An empty last bin that gets the outliers cannot be rounded to.
      sum += share * std::log(share / (counts[i] > 0 ? rounded : 1e-9));
    }
  }
  return sum;
}

}  // namespace

std::string_view name_of(CalibrationMethod method) {
  constexpr std::string_view names[] = {"max", "percentile", "entropy"};
  return names[static_cast<int>(method)];
}

ActivationHistogram::ActivationHistogram() : counts_(bins), range_(first_range) {}

void ActivationHistogram::add(std::span<const float> values) {
  const float max = largest_magnitude(values);
  max_ = std::max(max_, max);
  while (range_ <= static_cast<double>(max)) {
    for (std::size_t i = 0; i < bins / 2; ++i) counts_[i] = counts_[2 * i] + counts_[2 * i + 1];
    std::fill(counts_.begin() + bins / 2, counts_.end(), 0);
    range_ *= 2;
  }
  const auto factor = static_cast<float>(1 / bin_width());  // a power of two
  std::mutex mutex;
  parallel_for(std::ssize(values), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t> own(bins);
    for (const float value :
         values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)))
      if (value != 0) ++own[static_cast<std::size_t>(std::abs(value) * factor)];
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < bins; ++i) counts_[i] += own[i];
  });
}

double ActivationHistogram::limit(CalibrationMethod method, std::int64_t levels) const {
  if (max_ == 0) return 0;
  double limit = static_cast<double>(max_);
  if (method == CalibrationMethod::percentile) limit = std::min(limit, percentile_limit(0.9999));
  if (method == CalibrationMethod::entropy) limit = std::min(limit, entropy_limit(levels));
  return limit;
}

double ActivationHistogram::percentile_limit(double share) const {
  std::int64_t total = 0;
  for (const std::int64_t count : counts_) total += count;
  const auto wanted = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(total)));
  std::int64_t seen = 0;
  std::size_t bin = 0;
  while (bin < counts_.size() && (seen += counts_[bin]) < wanted) ++bin;
  return static_cast<double>(bin + 1) * bin_width();
}

double ActivationHistogram::entropy_limit(std::int64_t levels) const {
  std::int64_t total = 0;
  for (const std::int64_t count : counts_) total += count;
  double best = std::numeric_limits<double>::infinity();
  std::size_t chosen = counts_.size();
  for (std::size_t used = static_cast<std::size_t>(levels); used <= counts_.size(); used += 16) {
    const double found = divergence(counts_, used, levels, total);
    if (found < best) best = found, chosen = used;
  }
  return static_cast<double>(chosen) * bin_width();
}

}  // namespace tandem::detail
