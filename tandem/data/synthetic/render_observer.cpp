#include "tandem/data/synthetic/render_observer.h"

#include <utility>

#include "tandem/data/synthetic/render_counter.h"

namespace tandem {
namespace {

thread_local const RenderObserver* innermost = nullptr;

}  // namespace

RenderObserver::RenderObserver(OnImages on_images) : RenderObserver(std::move(on_images), Timing{}) {}

RenderObserver::RenderObserver(OnImages on_images, const Timing& timing)
    : on_images_(std::move(on_images)), timing_(timing), previous_(innermost) {
  if (on_images_) innermost = this;
}

RenderObserver::~RenderObserver() {
  innermost = previous_;
}

const RenderObserver* RenderObserver::current() {
  return innermost;
}

namespace detail {

RenderCounter::RenderCounter(std::int64_t total)
    : total_(total),
      observer_(RenderObserver::current()),
      next_ms_(observer_ ? observer_->timing().delay_ms : 0) {}

void RenderCounter::add() {
  if (observer_ == nullptr) return;
  done_.fetch_add(1, std::memory_order_relaxed);
  const std::unique_lock lock(reporting_, std::try_to_lock);
  const double now_ms = watch_.elapsed_ms();
  if (!lock.owns_lock() || now_ms < next_ms_) return;
  next_ms_ = now_ms + observer_->timing().interval_ms;
  observer_->report(done_.load(std::memory_order_relaxed), total_);
}

}  // namespace detail
}  // namespace tandem
