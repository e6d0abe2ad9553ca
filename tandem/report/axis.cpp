// Round tick values for linear and logarithmic axes.
#include "tandem/report/axis.h"

#include <algorithm>
#include <cmath>

namespace tandem {

double Axis::position(double value) const {
  if (log) return (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low));
  return (value - low) / (high - low);
}

bool is_plottable(double value, bool log) {
  // The bound keeps the axis arithmetic finite.
  constexpr double bound = 1e300;
  if (!std::isfinite(value) || std::abs(value) > bound) return false;
  return !log || value >= 1 / bound;
}

Axis linear_axis(double min, double max, int max_ticks) {
  const double magnitude = std::max(std::abs(min), std::abs(max));
  if (max - min <= magnitude * 1e-9) {  // one value, or values too close for distinct ticks
    const double margin = magnitude > 0 ? magnitude / 2 : 1;
    min -= margin;
    max += margin;
  }
  const double rough_step = std::max((max - min) / max_ticks, 1e-300);
  const double power = std::pow(10, std::floor(std::log10(rough_step)));
  const double mantissa = rough_step / power;
  const double step = power * (mantissa <= 1 ? 1 : mantissa <= 2 ? 2 : mantissa <= 5 ? 5 : 10);
  const double first = std::floor(min / step + 1e-9);
  const double last = std::max(std::ceil(max / step - 1e-9), first + 1);
  Axis axis{.low = first * step, .high = last * step, .log = false, .ticks = {}};
  for (double i = first; i <= last; ++i) axis.ticks.push_back(i * step);
  return axis;
}

Axis log_axis(double min, double max, int max_ticks) {
  const int first = static_cast<int>(std::floor(std::log10(min) + 1e-9));
  const int last = std::max(static_cast<int>(std::ceil(std::log10(max) - 1e-9)), first + 1);
  const int stride = (last - first + max_ticks - 1) / max_ticks;
  const bool few_decades = (last - first) * 3 <= max_ticks;
  Axis axis{.low = std::pow(10, first), .high = std::pow(10, last), .log = true, .ticks = {}};
  for (int power = first; power <= last; power += stride) {
    axis.ticks.push_back(std::pow(10, power));
    if (few_decades && power < last) {
      axis.ticks.push_back(2 * std::pow(10, power));
      axis.ticks.push_back(5 * std::pow(10, power));
    }
  }
  if (few_decades) {
    while (axis.ticks.size() > 2 && axis.ticks[1] <= min) axis.ticks.erase(axis.ticks.begin());
    while (axis.ticks.size() > 2 && axis.ticks[axis.ticks.size() - 2] >= max) axis.ticks.pop_back();
    axis.low = axis.ticks.front();
    axis.high = axis.ticks.back();
  }
  return axis;
}

}  // namespace tandem
