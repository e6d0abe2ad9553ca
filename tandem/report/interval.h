// How far a measured accuracy can be from the true one.
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

struct Interval {
  double low = 0, high = 1;
};

/// Wilson's 95 % interval of a share that was measured on `count` images; NaN if the share is, 0 to 1
/// without images. Unlike share ± error it is right for few images and for shares near 0 and 1.
Interval wilson_interval(double share, std::int64_t count);

/// "97.05 % (96.70–97.37)"; only the share if `count` is 0.
std::string format_accuracy(double share, std::int64_t count);
/// "97.05 % (95 % interval 96.70–97.37)".
std::string describe_accuracy(double share, std::int64_t count);
/// "96.70–97.37 %".
std::string format_interval(const Interval& interval);

}  // namespace tandem
