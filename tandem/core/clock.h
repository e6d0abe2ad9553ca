// Wall-clock time for measurements.
#pragma once

#include <cstdint>

namespace tandem {

/// Nanoseconds of CLOCK_MONOTONIC. All processes of a machine share this clock.
std::int64_t monotonic_ns();

/// Measures the time since its construction.
class Stopwatch {
 public:
  double elapsed_ms() const { return static_cast<double>(monotonic_ns() - start_ns_) / 1e6; }

 private:
  std::int64_t start_ns_ = monotonic_ns();
};

}  // namespace tandem
