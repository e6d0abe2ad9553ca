// How far the rendering of images has got, for a progress line.
#pragma once

#include <cstdint>
#include <functional>

namespace tandem {

/// While it exists, rendering that its thread starts (digits_split(), write_plates(), the data sets of these
/// names) calls `on_images`: from any thread, but never from two at once, and as seldom as `timing` says. An
/// inner one replaces an outer one; one without a function changes nothing.
class RenderObserver {
 public:
  using OnImages = std::function<void(std::int64_t done, std::int64_t total)>;
  struct Timing {
    double delay_ms = 1000;    ///< before the first call: what takes less is not reported
    double interval_ms = 100;  ///< between calls
  };

  explicit RenderObserver(OnImages on_images);
  RenderObserver(OnImages on_images, const Timing& timing);
  ~RenderObserver();
  RenderObserver(const RenderObserver&) = delete;
  RenderObserver& operator=(const RenderObserver&) = delete;

  /// The innermost one of this thread, or nullptr.
  static const RenderObserver* current();

  void report(std::int64_t done, std::int64_t total) const { on_images_(done, total); }
  const Timing& timing() const { return timing_; }

 private:
  OnImages on_images_;
  Timing timing_;
  const RenderObserver* previous_;
};

}  // namespace tandem
