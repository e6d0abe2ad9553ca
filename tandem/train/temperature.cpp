#include "tandem/train/temperature.h"

#include <algorithm>
#include <cmath>

#include "tandem/core/check.h"

namespace tandem {
namespace {

// The derivative of the negative log-likelihood by the inverse temperature, in which it is convex.
double slope(std::span<const float> logits, std::span<const std::int32_t> labels, std::size_t classes,
             double inverse) {
  double total = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span row = logits.subspan(i * classes, classes);
    const auto max = static_cast<double>(*std::ranges::max_element(row));
    double sum = 0, weighted = 0;
    for (const float logit : row) {
      const double difference = static_cast<double>(logit) - max;
      const double weight = std::exp(inverse * difference);
      sum += weight;
      weighted += weight * difference;
    }
    total += weighted / sum - (static_cast<double>(row[static_cast<std::size_t>(labels[i])]) - max);
  }
  return total;
}

}  // namespace

double fit_temperature(std::span<const float> logits, std::span<const std::int32_t> labels,
                       std::int64_t classes) {
  const auto width = static_cast<std::size_t>(classes);
  check(!labels.empty(), "[calibrate] expected images to fit a temperature to, got none");
  expect(logits.size() == labels.size() * width);
  const auto bad = std::ranges::find_if(logits, [](float value) { return !std::isfinite(value); });
  check(bad == logits.end(), "[calibrate] expected finite outputs, got {}", bad == logits.end() ? 0 : *bad);
  double low = std::log(1 / max_temperature), high = std::log(1 / min_temperature);
  if (slope(logits, labels, width, std::exp(low)) >= 0) return max_temperature;
  if (slope(logits, labels, width, std::exp(high)) <= 0) return min_temperature;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (slope(logits, labels, width, std::exp(middle)) < 0 ? low : high) = middle;
  }
  return std::exp(-(low + high) / 2);
}

}  // namespace tandem
