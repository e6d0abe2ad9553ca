// One axis of a plot: the range it shows, where its ticks stand, and where a value falls between its ends.
#pragma once

#include <vector>

namespace tandem {

struct Axis {
  double low = 0;
  double high = 1;
  bool log = false;
  std::vector<double> ticks;

  // 0 at the low end, 1 at the high one.
  double place(double value) const;
};

// Whether a value can be drawn on such an axis.
bool can_place(double value, bool log);

// Ticks at 1, 2 or 5 times a power of ten, about `most_ticks` of them; the ends are ticks, too.
Axis linear_axis(double least, double greatest, int most_ticks);

// Ticks at powers of ten, and at 2 and 5 times those when few decades are shown; the ends are ticks
// that enclose the range, as close as can be.
Axis log_axis(double least, double greatest, int most_ticks);

}  // namespace tandem
