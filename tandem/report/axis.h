// One axis of a plot: its range, its ticks and the position of a value along it.
#pragma once

#include <vector>

namespace tandem {

struct Axis {
  double low = 0;
  double high = 1;
  bool log = false;
  std::vector<double> ticks;

  // The position of `value` along the axis: 0 at the low end, 1 at the high end.
  double position(double value) const;
};

// Whether a value can be shown on a linear or logarithmic axis: finite, and positive when logarithmic.
bool is_plottable(double value, bool log);

// Ticks at multiples of 1, 2 or 5 times a power of ten, about `max_ticks` of them. Both ends are ticks.
Axis linear_axis(double min, double max, int max_ticks);

// Ticks at powers of ten, plus 2 and 5 times those when few decades are shown. Both ends are ticks, the
// closest ones that enclose the range.
Axis log_axis(double min, double max, int max_ticks);

}  // namespace tandem
