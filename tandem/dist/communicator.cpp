#include "tandem/dist/communicator.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/core/parallel.h"
#include "tandem/dist/group.h"
#include "tandem/process/wide_affinity.h"

namespace tandem {
namespace {

constexpr std::int64_t millisecond = 1'000'000;
// How long a failing or leaving rank tries to tell the others.
constexpr std::int64_t notice_ns = 300 * millisecond;
constexpr std::size_t max_sums = 3;  // pieces of sums under way; LocalSegment has as many slots

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::int64_t nanoseconds(double seconds) {
  return static_cast<std::int64_t>(seconds * 1e9);
}

}  // namespace

Communicator::Communicator(const std::function<TandemTransport()>& open, double stall_limit_s)
    : stall_limit_ns_(nanoseconds(stall_limit_s)) {
  {
    const WideAffinity wide;  // not on the one CPU of the thread that calls
    thread_ = std::thread([this, &open] { run(open); });
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return opened_ || open_error_; });
  if (!open_error_) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(open_error_);
}

Communicator::~Communicator() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    transport_->wake();
  }
  changed_.notify_all();
  thread_.join();
}

void Communicator::run(const std::function<TandemTransport()>& open) {
  std::unique_lock lock(mutex_);
  try {
    transport_ = std::make_unique<Transport>(open());
    watch_ = std::make_unique<Watch>(*transport_);
    rank_ = transport_->rank();
    size_ = transport_->size();
    any_thread_ = transport_->any_thread();
    spin_ns_ = usable_cpus() >= size_ ? 20'000 : 2'000;
    last_ns_ = monotonic_ns();
    opened_ = true;
  } catch (...) {
    open_error_ = std::current_exception();
  }
  changed_.notify_all();
  if (open_error_) return;
  int idle = 0;
  while (!stopping_) {
    if (any_thread_ && waiters_ > 0) {  // one of them does our work
      changed_.wait_for(lock, std::chrono::nanoseconds(watch_->interval_ns()));
      continue;
    }
    const std::uint32_t seen = transport_->signal();
    if (progress()) {
      idle = 0;
      continue;
    }
    const bool busy = oldest() != nullptr;
    if (transport_->can_wait()) {
      lock.unlock();
      pause(seen, busy);
      lock.lock();
    } else {
      changed_.wait_for(lock,
                        std::chrono::nanoseconds(std::min(busy ? millisecond : 5 * millisecond,
                                                          std::int64_t{20'000} << std::min(idle++, 8))));
    }
  }
  leave();
}

void Communicator::leave() {
  if (!failure_) {
    try {
      watch_->send_leave();
      flush_notices();
    } catch (const std::exception&) {  // nobody listens any more
    }
  }
  for (LaneState& lane : lanes_) lane.running.clear();
  watch_.reset();
  transport_.reset();
}

// Waits until something may have happened since `seen`.
void Communicator::pause(std::uint32_t seen, bool spin) {
  const std::int64_t begin = monotonic_ns();
  while (spin && transport_->signal() == seen && monotonic_ns() - begin < spin_ns_) pause_cpu();
  if (transport_->signal() == seen) transport_->wait(seen, watch_->interval_ns());
}

const Communicator::Running* Communicator::oldest() const {
  for (const LaneState& lane : lanes_)
    if (!lane.running.empty()) return &lane.running.front();
  return nullptr;
}

bool Communicator::progress() {
  if (failure_) return false;
  bool moved = false;
  try {
    if (begin_watch_) std::exchange(begin_watch_, nullptr)();
    if (requested_failure_) {
      set_failure(*requested_failure_);
      return true;
    }
    if (auto failure = watch_->advance()) {
      set_failure(std::move(*failure));
      return true;
    }
    for (bool again = true; again;) {
      again = false;
      for (LaneState& lane : lanes_) {
        const bool is_small = &lane == &lanes_[static_cast<std::size_t>(Lane::small)];
        start_pieces(lane, is_small ? 64 : max_sums);
        again |= advance_running(lane);
      }
      moved |= again;
    }
    check_stall(moved);
  } catch (const std::exception& error) {
    set_failure({.text = fmt::format("{}: {}", watch_->describe(rank_), error.what())});
    moved = true;
  }
  return moved;
}

void Communicator::start_pieces(LaneState& lane, std::size_t max_running) {
  while (!lane.waiting.empty() && lane.running.size() < max_running) {
    const std::shared_ptr<Job> job = lane.waiting.front();
    lane.running.push_back({job, job->make(job->started)});
    if (++job->started == job->pieces) lane.waiting.pop_front();
  }
}

// True when an operation was completed.
bool Communicator::advance_running(LaneState& lane) {
  bool any = false;
  for (std::size_t i = 0; i < lane.running.size();) {
    if (!lane.running[i].operation->advance()) {
      ++i;
      continue;
    }
    const std::shared_ptr<Job> job = lane.running[i].job;
    lane.running.erase(lane.running.begin() + static_cast<std::ptrdiff_t>(i));
    if (++job->finished == job->pieces) finish(*job);
    any = true;
  }
  return any;
}

void Communicator::finish(Job& job) {
  job.make = nullptr;  // and with it the tensors
  job.done.store(true);
  if (waiters_ > 0) transport_->wake();  // another thread may wait for this job
  if (!any_thread_) changed_.notify_all();
}

void Communicator::check_stall(bool moved) {
  const std::int64_t now = monotonic_ns();
  const std::int64_t passed = std::min(now - std::exchange(last_ns_, now), 100 * millisecond);
  const Running* running = oldest();
  if (moved || !running) {
    stalled_ns_ = 0;
    return;
  }
  stalled_ns_ += passed;
  const int rank = running->operation->waits_for();
  if (rank < 0 || rank == rank_) return;
  if (watch_->has_left(rank) && stalled_ns_ >= 1000 * millisecond)
    set_failure({.text = fmt::format("{} has left the group", watch_->describe(rank)), .lost_rank = true});
  else if (stalled_ns_ >= stall_limit_ns_)
    set_failure({.text = fmt::format("{} has not taken part in {} for {:g} s", watch_->describe(rank),
                                     running->job->name, static_cast<double>(stall_limit_ns_) / 1e9),
                 .lost_rank = true});
}

// Also pushes the messages that are on their way before the notices: their buffers are valid until the jobs
// are done.
void Communicator::flush_notices() {
  const std::int64_t end = monotonic_ns() + notice_ns;
  while (!watch_->sent() && monotonic_ns() < end) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

void Communicator::set_failure(GroupFailure failure) {
  failure_ = std::move(failure);
  if (!failure_->is_known) {
    try {
      watch_->send_failure(*failure_);
      flush_notices();
    } catch (const std::exception&) {  // those who do not get it find out by themselves
    }
  }
  for (LaneState& lane : lanes_) {
    for (const Running& running : lane.running) running.job->failed = true;
    for (const auto& job : lane.waiting) job->failed = true;
    std::vector<Running> running = std::move(lane.running);
    std::deque<std::shared_ptr<Job>> waiting = std::move(lane.waiting);
    lane.running.clear();
    lane.waiting.clear();
    for (Running& one : running) one.operation.reset();
    for (const Running& one : running) finish(*one.job);
    for (const auto& job : waiting) finish(*job);
  }
  changed_.notify_all();
  transport_->wake();
}

void Communicator::begin_watch(std::vector<Place> places, double limit_s, double stall_limit_s) {
  const std::lock_guard lock(mutex_);
  stall_limit_ns_ = nanoseconds(stall_limit_s);
  begin_watch_ = [this, places = std::move(places), limit_s] { watch_->begin(places, limit_s); };
  transport_->wake();
  changed_.notify_all();
}

std::shared_ptr<Communicator::Job> Communicator::start(
    Lane lane, std::string name, std::int64_t pieces,
    std::function<std::unique_ptr<Operation>(std::int64_t piece)> make) {
  auto job = std::make_shared<Job>();
  job->name = std::move(name);
  job->pieces = pieces;
  job->make = std::move(make);
  const std::lock_guard lock(mutex_);
  if (failure_) {
    job->failed = true;
    finish(*job);
  } else if (pieces == 0) {
    finish(*job);
  } else {
    lanes_[static_cast<std::size_t>(lane)].waiting.push_back(job);
    if (lane == Lane::sums || !any_thread_) {  // who starts a small operation waits for it
      transport_->wake();
      changed_.notify_all();
    }
  }
  return job;
}

void Communicator::wait(Job& job) {
  if (!job.done.load()) {
    if (any_thread_) {
      drive_until_done(job);
    } else {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return job.done.load(); });  // progress() has the deadlines
    }
  }
  if (!job.failed) return;
  const std::lock_guard lock(mutex_);
  if (failure_->lost_rank) throw LostRank(failure_->text);
  throw Error(failure_->text);
}

void Communicator::drive_until_done(Job& job) {
  ++waiters_;
  int idle = 0;
  while (!job.done.load()) {
    const std::uint32_t seen = transport_->signal();
    bool moved = false;
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (lock) moved = progress();
    }
    if (moved || job.done.load()) continue;
    if (transport_->can_wait())
      pause(seen, true);
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20) * (1 << std::min(idle++, 5)));
  }
  const std::lock_guard lock(mutex_);
  if (--waiters_ == 0 && oldest()) changed_.notify_all();  // the communication thread goes on
}

void Communicator::fail(const std::string& text) noexcept {
  try {
    std::unique_lock lock(mutex_);
    if (failure_) return;
    if (any_thread_) {
      set_failure({.text = text});
    } else {
      requested_failure_ = GroupFailure{.text = text};
      changed_.notify_all();
      changed_.wait_for(lock, std::chrono::seconds(1), [&] { return failure_.has_value(); });
    }
  } catch (const std::exception&) {  // the others find out when this process ends
  }
}

}  // namespace tandem
