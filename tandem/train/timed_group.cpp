#include "tandem/train/timed_group.h"

#include <memory>

#include "tandem/core/clock.h"

namespace tandem {

template <class F>
void TimedGroup::measure(const char* name, F&& operation) {
  const std::int64_t begin = monotonic_ns();
  operation();
  const std::int64_t end = monotonic_ns();
  waited_ns_ += end - begin;
  if (timeline_) timeline_->add({TrackKind::exchange}, name, begin, end, {});
}

class TimedGroup::TimedWork : public Work::State {
 public:
  TimedWork(TimedGroup& group, Work work) : group_(group), work_(std::move(work)) {}

  void wait() override {
    group_.measure("sum gradients", [&] { work_.wait(); });
  }

 private:
  TimedGroup& group_;
  Work work_;
};

TimedGroup::TimedGroup(Group& group, Timeline* timeline)
    : Group(group.place().rank), group_(group), timeline_(timeline) {}

Work TimedGroup::reduce(const Partials& mine, const Tensor& out) {
  return Work(std::make_shared<TimedWork>(*this, group_.reduce(mine, out)));
}

void TimedGroup::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  measure(ExchangeName::current(), [&] { group_.all_gather(mine, all); });
}

void TimedGroup::broadcast(std::span<std::byte> bytes, int from) {
  measure(ExchangeName::current(), [&] { group_.broadcast(bytes, from); });
}

}  // namespace tandem
