// Nice ticks, linear and logarithmic.
#include "tandem/report/axis.h"

#include <algorithm>
#include <cmath>

namespace tandem {

double Axis::place(double value) const {
  if (log) return (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low));
  return (value - low) / (high - low);
}

bool can_place(double value, bool log) {
  // The bound keeps the sums and powers of the axes finite.
  constexpr double bound = 1e300;
  if (!std::isfinite(value) || std::abs(value) > bound) return false;
  return !log || value >= 1 / bound;
}

Axis linear_axis(double least, double greatest, int most_ticks) {
  const double size = std::max(std::abs(least), std::abs(greatest));
  if (greatest - least <= size * 1e-9) {  // one value, or too close for ticks that differ
    const double around = size > 0 ? size / 2 : 1;
    least -= around;
    greatest += around;
  }
  const double rough = std::max((greatest - least) / most_ticks, 1e-300);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double lead = rough / power;
  const double step = power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
  const double first = std::floor(least / step + 1e-9);
  const double last = std::max(std::ceil(greatest / step - 1e-9), first + 1);
  Axis axis{.low = first * step, .high = last * step, .log = false, .ticks = {}};
  for (double i = first; i <= last; ++i) axis.ticks.push_back(i * step);
  return axis;
}

Axis log_axis(double least, double greatest, int most_ticks) {
  const int first = static_cast<int>(std::floor(std::log10(least) + 1e-9));
  const int last = std::max(static_cast<int>(std::ceil(std::log10(greatest) - 1e-9)), first + 1);
  const int stride = (last - first + most_ticks - 1) / most_ticks;
  const bool few = (last - first) * 3 <= most_ticks;
  Axis axis{.low = std::pow(10, first), .high = std::pow(10, last), .log = true, .ticks = {}};
  for (int power = first; power <= last; power += stride) {
    axis.ticks.push_back(std::pow(10, power));
    if (few && power < last) {
      axis.ticks.push_back(2 * std::pow(10, power));
      axis.ticks.push_back(5 * std::pow(10, power));
    }
  }
  if (few) {
    while (axis.ticks.size() > 2 && axis.ticks[1] <= least) axis.ticks.erase(axis.ticks.begin());
    while (axis.ticks.size() > 2 && axis.ticks[axis.ticks.size() - 2] >= greatest) axis.ticks.pop_back();
    axis.low = axis.ticks.front();
    axis.high = axis.ticks.back();
  }
  return axis;
}

}  // namespace tandem
