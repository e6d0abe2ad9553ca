// Counts rendered images for the RenderObserver of the thread that makes it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "tandem/core/clock.h"
#include "tandem/data/synthetic/render_observer.h"

namespace tandem::detail {

class RenderCounter {
 public:
  explicit RenderCounter(std::int64_t total);

  // One image is done. Thread-safe.
  void add();

 private:
  std::int64_t total_;
  const RenderObserver* observer_;  // may be null
  std::atomic<std::int64_t> done_ = 0;
  std::mutex reporting_;
  Stopwatch watch_;
  double next_ms_;  // when to report next, guarded by reporting_
};

}  // namespace tandem::detail
