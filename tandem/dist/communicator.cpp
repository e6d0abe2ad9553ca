#include "tandem/dist/communicator.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/core/message_of.h"
#include "tandem/core/parallel.h"
#include "tandem/core/spin.h"
#include "tandem/dist/group.h"
#include "tandem/process/wide_affinity.h"

namespace tandem {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr std::int64_t millisecond = 1'000'000;
constexpr std::int64_t short_spin_ns = 2'000, long_spin_ns = 20'000;
// How long a transport without a signal is polled without a pause: while a thread waits for an operation, and
// after an operation, as another often follows.
constexpr std::int64_t poll_spin_ns = 2 * millisecond, linger_ns = 50'000;
// How long a failing or leaving rank tries to tell the others.
constexpr std::int64_t notice_ns = 300 * millisecond;

// Between two polls of a transport without a signal.
void spin_briefly() {
  for (int i = 0; i < 10; ++i) pause_cpu();
}

std::int64_t poll_pause_ns(std::int64_t idle_ns) {
  return idle_ns < 20 * millisecond ? 20'000 : millisecond;
}

std::int64_t to_ns(double seconds) {
  return static_cast<std::int64_t>(seconds * 1e9);
}

// Whether each of the ranks of this node can have a CPU of its own. With fewer CPUs than the machine has,
// this process has been given its share.
bool enough_cpus(int local_ranks) {
  const int cpus = usable_cpus();
  return cpus >= local_ranks || (cpus >= 2 && cpus < ::sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace

Communicator::Communicator(std::function<TandemTransport()> open, const Options& options)
    : sums_use_transport_(options.sums_use_transport),
      end_limit_ns_(to_ns(options.end_limit_s)),
      stall_limit_ns_(to_ns(options.start_limit_s)) {
  const auto opening = std::make_shared<Opening>();
  opening->open = std::move(open);
  {
    const WideAffinity wide;  // not on the one CPU of the thread that calls
    thread_ = std::thread([this, opening] {
      if (open_transport(*opening)) run();
    });
  }
  std::unique_lock lock(opening->mutex);
  opening->changed.wait_for(lock, nanoseconds(stall_limit_ns_), [&] { return opening->done; });
  if (!opening->done) {
    opening->abandoned = true;
    thread_.detach();
    throw LostRank(fmt::format("[group] the ranks have not connected within {:g} s: some have not started",
                               options.start_limit_s));
  }
  if (!opening->error) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(opening->error);
}

Communicator::~Communicator() {
  {
    const std::lock_guard lock(small_.mutex);
    stopping_ = true;
    transport_->wake();
  }
  changed_.notify_all();
  thread_.join();
}

// Touches nothing of this object before the transport is open: the constructor may have given up.
bool Communicator::open_transport(Opening& opening) {
  std::unique_ptr<Transport> transport;
  std::exception_ptr error;
  try {
    transport = std::make_unique<Transport>(opening.open());
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(opening.mutex);
  if (opening.abandoned) {
    if (transport) transport->set_failed();
    return false;
  }
  try {
    if (transport) {
      watch_ = std::make_unique<Watch>(*transport);
      transport_ = std::move(transport);
      rank_ = transport_->rank();
      size_ = transport_->size();
      any_thread_ = transport_->any_thread();
    }
  } catch (...) {
    error = std::current_exception();
  }
  opening.error = error;
  opening.done = true;
  opening.changed.notify_all();
  return !error;
}

void Communicator::run() {
  const ThreadLimit alone(1);  // the others compute
  std::int64_t moved_ns = monotonic_ns();
  while (!stopping_) {
    const std::uint32_t seen = transport_->signal();
    bool moved = false;
    if (!any_thread_ || waiters_ == 0) {
      const std::lock_guard lock(small_.mutex);
      moved = progress_small();
    }
    if (!any_thread_ || sum_waiters_ == 0) moved |= progress_sums();
    if (moved) {
      moved_ns = monotonic_ns();
      continue;
    }
    std::unique_lock lock(small_.mutex);
    if (backs_off()) {
      sleep(lock, watch_->interval_ns(), [&] { return !backs_off(); });
    } else if (!transport_->can_wait()) {
      poll_later(lock, monotonic_ns() - moved_ns);
    } else {
      lock.unlock();
      pause(seen, open_sums_ > 0 ? short_spin_ns : 0);
    }
  }
  leave();
}

// Waits for `changed_` until `condition`, or this object ends.
template <class Condition>
void Communicator::sleep(std::unique_lock<std::mutex>& lock, std::int64_t max_ns, Condition&& condition) {
  asleep_ = true;  // before the condition is looked at: see start()
  changed_.wait_for(lock, nanoseconds(max_ns), [&] { return stopping_ || condition(); });
  asleep_ = false;
}

// Without a signal to wait for. A message may take many polls, which move its data.
void Communicator::poll_later(std::unique_lock<std::mutex>& lock, std::int64_t idle_ns) {
  const bool busy = !small_.running.empty() || open_sums_ > 0;
  if (may_spin_ && (busy ? waiters_ > 0 && idle_ns < poll_spin_ns : idle_ns < linger_ns)) {
    lock.unlock();
    spin_briefly();
    return;
  }
  sleep(lock, busy ? poll_pause_ns(idle_ns) : 5 * millisecond,
        [&] { return has_arrivals() || (begin_watch_ != nullptr) || requested_failure_; });
}

bool Communicator::has_arrivals() {
  const std::lock_guard lock(arriving_mutex_);
  return !arriving_.empty();
}

// Whether other threads do the work of this one.
bool Communicator::backs_off() const {
  return any_thread_ && waiters_ > 0 && (open_sums_ == 0 || sum_waiters_ > 0);
}

void Communicator::leave() {
  const std::scoped_lock lock(sums_.mutex, small_.mutex);
  if (!failure_) {
    try {
      watch_->send_leave();
      flush_notices();
      if (transport_->joint_close()) await_others();
    } catch (const std::exception& error) {  // nobody listens any more
      failure_ = own_failure(message_of(error));
    }
  }
  if (failure_) transport_->set_failed();
  give_up(sums_);
  give_up(small_);
  watch_.reset();
  transport_.reset();
}

// Returns when all ranks leave, so that they can close the transport together; until then a lost one is
// noticed.
void Communicator::await_others() {
  const std::int64_t end = monotonic_ns() + end_limit_ns_;
  while (!failure_ && watch_->first_here() >= 0) {
    failure_ = watch_->advance();
    if (!failure_ && monotonic_ns() > end)
      failure_ = GroupFailure{.text = watch_->describe(watch_->first_here()) + " has not left the group"};
    std::this_thread::sleep_for(microseconds(100));
  }
}

// Waits until something may have happened since `seen`.
void Communicator::pause(std::uint32_t seen, std::int64_t spin_ns) const {
  const std::int64_t end = monotonic_ns() + spin_ns;
  while (transport_->signal() == seen && monotonic_ns() < end) pause_cpu();
  if (transport_->signal() == seen) transport_->wait(seen, watch_->interval_ns());
}

// The mutex of the small lane is locked.
bool Communicator::progress_small() {
  if (failure_) return false;
  std::optional<GroupFailure> failure;
  bool moved = false;
  try {
    if (begin_watch_) std::exchange(begin_watch_, nullptr)();
    failure = requested_failure_;
    if (!failure) failure = watch_->advance();
    if (!failure) {
      moved = advance(small_);
      if (is_stalled(small_, moved)) failure = describe_stall(small_);
    }
  } catch (const std::exception& error) {
    failure = explain(message_of(error));
  }
  if (failure) set_failure(std::move(*failure));
  return moved || failure;
}

bool Communicator::progress_sums() {
  if (open_sums_ == 0) return false;
  const std::lock_guard lock(sums_.mutex);
  std::unique_lock transport_lock(small_.mutex, std::defer_lock);
  if (sums_use_transport_) transport_lock.lock();
  if (failed_) {
    give_up(sums_);
    return true;
  }
  std::string error_text;
  bool moved = false, stalled = false;
  try {
    moved = advance(sums_);
    stalled = is_stalled(sums_, moved);
  } catch (const std::exception& error) {
    error_text = message_of(error);
  }
  if (!stalled && error_text.empty()) return moved;
  if (!sums_use_transport_) transport_lock.lock();
  auto failure = stalled ? describe_stall(sums_) : explain(error_text);
  if (!failure) return moved;
  if (!failure_) set_failure(std::move(*failure));
  give_up(sums_);
  return true;
}

GroupFailure Communicator::own_failure(const std::string& text) const {
  return {.text = fmt::format("{}: {}", watch_->describe(rank_), text)};
}

// A message fails where its receiver is gone: then that is the reason, or what the receiver said last. The
// mutex of the small lane is locked.
GroupFailure Communicator::explain(const std::string& error) {
  const std::int64_t end = monotonic_ns() + notice_ns;
  do {
    try {
      if (auto failure = watch_->advance()) return *failure;
    } catch (const std::exception&) {  // of another message
    }
    std::this_thread::sleep_for(microseconds(100));
  } while (monotonic_ns() < end);
  return own_failure(error);
}

// Starts what may start and advances what runs. True when an operation was started or completed.
bool Communicator::advance(LaneState& lane) {
  {
    const std::lock_guard lock(arriving_mutex_);
    std::erase_if(arriving_, [&](const std::shared_ptr<Job>& job) {
      if (&lane != (job->lane == Lane::sums ? &sums_ : &small_)) return false;
      lane.waiting.push_back(job);
      return true;
    });
  }
  bool any = false;
  while (!lane.waiting.empty() && lane.running.size() < lane.max_running) {
    any = true;
    const std::shared_ptr<Job> job = lane.waiting.front();
    lane.running.push_back({job, job->make(job->started)});
    if (++job->started == job->pieces) lane.waiting.pop_front();
  }
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
  if (job.done) return;
  job.make = nullptr;  // and with it the tensors
  if (job.lane == Lane::sums) --open_sums_;
  job.done = true;
  if (waiters_ > 0) transport_->wake();  // another thread may wait for this job
  if (!any_thread_) job.done.notify_all();
}

// Whether nothing has happened for so long that the reason is looked for.
bool Communicator::is_stalled(LaneState& lane, bool moved) const {
  const std::int64_t now = monotonic_ns();
  // Time in which this process was stopped does not count.
  const std::int64_t passed = std::min(now - std::exchange(lane.last_ns, now), 100 * millisecond);
  lane.stalled_ns = moved || lane.running.empty() ? 0 : lane.stalled_ns + passed;
  return !lane.running.empty() &&
         lane.stalled_ns >= std::min<std::int64_t>(1000 * millisecond, stall_limit_ns_);
}

// The mutex of the small lane is locked.
std::optional<GroupFailure> Communicator::describe_stall(const LaneState& lane) const {
  const Running& oldest = lane.running.front();
  const int rank = oldest.operation->waits_for();
  if (rank < 0 || rank == rank_) return std::nullopt;
  if (watch_->has_left(rank))
    return GroupFailure{.text = fmt::format("{} has left the group", watch_->describe(rank)),
                        .lost_rank = true};
  if (lane.stalled_ns < stall_limit_ns_) return std::nullopt;
  return GroupFailure{.text = fmt::format("{} has not taken part in {} for {:g} s", watch_->describe(rank),
                                          oldest.job->name, static_cast<double>(stall_limit_ns_) / 1e9),
                      .lost_rank = true};
}

// Also pushes the messages that are on their way before the notices: their buffers are valid until the jobs
// are done.
void Communicator::flush_notices() {
  const std::int64_t end = monotonic_ns() + notice_ns;
  while (!watch_->sent() && monotonic_ns() < end) std::this_thread::sleep_for(microseconds(100));
}

// The mutex of the small lane is locked. Sums are given up by the thread that advances them next.
void Communicator::set_failure(GroupFailure failure) {
  failure_ = std::move(failure);
  if (!failure_->is_known) {
    try {
      watch_->send_failure(*failure_);
      flush_notices();
    } catch (const std::exception&) {  // those who do not get it find out by themselves
    }
  }
  failed_ = true;
  give_up(small_);
  changed_.notify_all();
  transport_->wake();
}

void Communicator::give_up(LaneState& lane) {
  std::vector<std::shared_ptr<Job>> jobs;
  for (const Running& running : lane.running) jobs.push_back(running.job);
  for (const auto& job : lane.waiting) jobs.push_back(job);
  {
    const std::lock_guard lock(arriving_mutex_);
    for (const auto& job : arriving_)
      if (&lane == (job->lane == Lane::sums ? &sums_ : &small_)) jobs.push_back(job);
    std::erase_if(arriving_, [&](const auto& job) { return std::ranges::find(jobs, job) != jobs.end(); });
  }
  lane.running.clear();
  lane.waiting.clear();
  for (const auto& job : jobs) {
    if (!job->done) job->failed = true;
    finish(*job);
  }
}

void Communicator::begin_watch(std::vector<Place> places, double limit_s, double stall_limit_s,
                               std::vector<int> visible) {
  stall_limit_ns_ = to_ns(stall_limit_s);
  may_spin_ = enough_cpus(places[static_cast<std::size_t>(rank_)].local_size);
  const std::lock_guard lock(small_.mutex);
  begin_watch_ = [this, places = std::move(places), limit_s, visible = std::move(visible)] {
    watch_->begin(places, limit_s, visible);
  };
  transport_->wake();
  changed_.notify_all();
}

std::shared_ptr<Communicator::Job> Communicator::start(Lane lane, std::string name, std::int64_t pieces,
                                                       MakePiece make) {
  auto job = std::make_shared<Job>();
  job->lane = lane;
  job->name = std::move(name);
  job->pieces = pieces;
  if (pieces == 0) {
    job->done = true;
    return job;
  }
  job->make = std::move(make);
  if (lane == Lane::sums) ++open_sums_;
  {
    const std::lock_guard lock(arriving_mutex_);
    arriving_.push_back(job);
  }
  if (failed_) {  // nobody advances the lane any more
    const std::scoped_lock lock(sums_.mutex, small_.mutex);
    give_up(lane == Lane::sums ? sums_ : small_);
  } else if (lane == Lane::sums || !any_thread_) {  // who starts a small operation waits for it
    transport_->wake();
    if (asleep_) {
      {
        const std::lock_guard lock(small_.mutex);
      }  // the communication thread does not begin to wait meanwhile
      changed_.notify_all();
    }
  }
  return job;
}

void Communicator::wait(Job& job) {
  if (!job.done) {
    if (any_thread_)
      drive_until_done(job);
    else
      wait_until_done(job);
  }
  if (!job.failed) return;
  throw_if_failed();
  throw Error("[group] the group has ended");
}

void Communicator::throw_if_failed() {
  if (!failed_) return;
  const std::lock_guard lock(small_.mutex);
  if (failure_->lost_rank) throw LostRank(failure_->text);
  throw Error(failure_->text);
}

void Communicator::wait_until_done(const Job& job) {
  ++waiters_;
  const std::int64_t end = monotonic_ns() + (may_spin_ ? long_spin_ns : 0);
  while (!job.done && monotonic_ns() < end) pause_cpu();
  job.done.wait(false);
  --waiters_;
}

void Communicator::drive_until_done(Job& job) {
  const bool is_sum = job.lane == Lane::sums;
  ++waiters_;
  if (is_sum) ++sum_waiters_;
  std::int64_t moved_ns = monotonic_ns();
  while (!job.done) {
    const std::uint32_t seen = transport_->signal();
    bool moved = false;
    {
      const std::lock_guard lock(small_.mutex);
      moved = progress_small();
    }
    if (is_sum) moved |= progress_sums();
    const std::int64_t now = monotonic_ns();
    if (moved) moved_ns = now;
    if (moved || job.done) continue;
    if (transport_->can_wait())
      pause(seen, may_spin_ ? long_spin_ns : short_spin_ns);
    else if (may_spin_ && now - moved_ns < poll_spin_ns)
      spin_briefly();
    else
      std::this_thread::sleep_for(nanoseconds(poll_pause_ns(now - moved_ns)));
  }
  const std::lock_guard lock(small_.mutex);
  --waiters_;
  if (is_sum) --sum_waiters_;
  if (open_sums_ > 0) changed_.notify_all();  // the communication thread goes on with them
}

void Communicator::fail(const std::string& text) noexcept {
  try {
    std::unique_lock lock(small_.mutex);
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
