// Starts, supervises and replaces workers.
#include "tandem/data/loader/worker_pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/process/wide_affinity.h"

namespace tandem {
namespace {

constexpr int max_failed_starts = 3;
constexpr int max_crashes = 3;  // of one sample, until it is skipped
constexpr int max_consecutive_crashing = 8;
constexpr std::int64_t second_ns = 1'000'000'000;
constexpr double min_start_timeout_s = 10;  // loading a program takes a while

}  // namespace

SharedLoaderState::SharedLoaderState(std::shared_ptr<const detail::SampleStore> given, const RingSetup& setup)
    : memory(Ring::bytes_for(setup), "the loader's ring", "lower prefetch"),
      ring(Ring::make(memory.bytes(), setup)),
      samples(std::move(given)) {}

WorkerPool::WorkerPool(std::shared_ptr<const SharedLoaderState> state, const WorkerPoolOptions& options)
    : state_(std::move(state)), options_(options) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) fail("[loader] cannot make a pipe for jobs: {}", errno_message(errno));
  jobs_read_ = std::make_shared<const Descriptor>(fds[0]);
  jobs_write_ = Descriptor(fds[1]);
  ::fcntl(jobs_write_.get(), F_SETFL, O_NONBLOCK);
  results_ = std::make_shared<PipeQueue>();
  if (options_.kind == WorkerKind::process)
    data_ = state_->samples->worker_memory(state_->ring.setup().plan.samples);
  worker_slots_.resize(static_cast<std::size_t>(state_->ring.setup().workers));
  try {
    for (int worker = 0; worker < state_->ring.setup().workers; ++worker) start(worker);
  } catch (...) {
    stop();
    throw;
  }
}

WorkerPool::~WorkerPool() {
  stop();
}

void WorkerPool::stop() noexcept {
  state_->ring.stop();
  jobs_write_.reset();
  for (const WorkerSlot& worker_slot : worker_slots_) worker_slot.process.kill();
  for (WorkerSlot& worker_slot : worker_slots_) {
    if (!worker_slot.thread.joinable()) continue;
    if (has_hung_thread_)
      worker_slot.thread.detach();
    else
      worker_slot.thread.join();
  }
}

void WorkerPool::start(int worker) {
  WorkerSlot& worker_slot = worker_slots_[static_cast<std::size_t>(worker)];
  WorkerStatus& status = state_->ring.status(worker);
  status.ready.store(0);
  status.sample.store(-1);
  worker_slot.changed_ns = monotonic_ns();
  const WideAffinity all_cpus;
  if (options_.kind == WorkerKind::process) {
    const WorkerFiles files{.ring = state_->memory.fd(),
                            .data = data_->fd(),
                            .jobs = jobs_read_->get(),
                            .results = results_->ends()};
    std::vector<std::string> arguments = worker_arguments(files, worker);
    arguments.insert(arguments.begin(), "tandem");
    worker_slot.process =
        ChildProcess(options_.program, arguments, {.fds = files.fds(), .environment = worker_environment()});
    return;
  }
  // The thread shares ownership of what it uses: a hung one outlives this object.
  const auto run = [state = state_, jobs = jobs_read_, results = results_, worker,
                    before_sample = options_.before_sample] {
    std::unique_ptr<SampleReader> reader;
    try {
      reader = state->make_reader();
    } catch (...) {
      return report_exception(state->ring, -1, *results);
    }
    run_worker_loop({.ring = state->ring,
                     .reader = reader.get(),
                     .worker = worker,
                     .jobs = jobs->get(),
                     .results = results.get(),
                     .before_sample = before_sample});
  };
  try {
    worker_slot.thread = std::thread(run);
  } catch (const std::system_error& error) {
    fail("[loader] cannot start worker thread {}: {}", worker, errno_message(error.code().value()));
  }
}

// A full pipe holds thousands of tokens: no worker lacks one now, and poll() repeats them later.
void WorkerPool::announce(int slot) {
  const std::int32_t token = slot;
  ssize_t written;
  do written = ::write(jobs_write_.get(), &token, sizeof(token));
  while (written < 0 && errno == EINTR);
  if (written != sizeof(token) && errno != EAGAIN)
    fail("[loader] cannot announce a job: {}", errno_message(errno));
  announced_ns_ = repeated_ns_ = monotonic_ns();
}

// Announces every posted slot again: a worker may have died or hung after it had read a token.
void WorkerPool::announce_posted() {
  const std::int64_t announced = announced_ns_;
  for (int slot = 0; slot < state_->ring.setup().slots; ++slot)
    if (state_->ring.word(slot).state == SlotState::posted) announce(slot);
  announced_ns_ = announced;
  repeated_ns_ = monotonic_ns();
}

void WorkerPool::poll(std::chrono::milliseconds timeout) {
  std::vector<pollfd> wanted{{results_->ends().read, POLLIN, 0}};
  const bool processes = options_.kind == WorkerKind::process;
  if (processes)
    for (const WorkerSlot& worker_slot : worker_slots_)
      wanted.push_back({worker_slot.process.end_fd(), POLLIN, 0});
  const int found =
      ::poll(wanted.data(), static_cast<nfds_t>(wanted.size()), static_cast<int>(timeout.count()));
  if (found < 0 && errno != EINTR) fail("[loader] cannot wait for workers: {}", errno_message(errno));
  if (found > 0 && wanted[0].revents != 0)
    for (std::int64_t left = results_->length(); left > 0; --left) results_->get();
  if (const auto failure = state_->ring.failure()) {
    const std::string where = failure->sample < 0 ? "a worker" : state_->samples->describe(failure->sample);
    fail("[loader] {}: {}", where, failure->text);
  }
  if (processes)
    for (int worker = 0; worker < static_cast<int>(worker_slots_.size()); ++worker) {
      WorkerSlot& worker_slot = worker_slots_[static_cast<std::size_t>(worker)];
      const bool may_have_ended =
          worker_slot.process.end_fd() < 0 || wanted[1 + static_cast<std::size_t>(worker)].revents != 0;
      if (!may_have_ended) continue;
      const std::string name = name_of(worker);
      if (const auto how = worker_slot.process.ended()) replace_worker(worker, name + " " + *how);
    }
  // While events arrive, workers make progress. A hung worker matters once the trainer waits for it.
  if (timeout.count() == 0 || found > 0) return;
  bool jobs_wait = false;
  for (int slot = 0; slot < state_->ring.setup().slots; ++slot)
    jobs_wait = jobs_wait || state_->ring.word(slot).state == SlotState::posted;
  if (jobs_wait && monotonic_ns() - repeated_ns_ > second_ns) announce_posted();
  for (int worker = 0; worker < static_cast<int>(worker_slots_.size()); ++worker)
    check_progress(worker, jobs_wait);
}

// Posts the jobs of a dead worker again and starts a new one in its slot.
void WorkerPool::replace_worker(int worker, const std::string& how) {
  WorkerSlot& worker_slot = worker_slots_[static_cast<std::size_t>(worker)];
  const WorkerStatus& status = state_->ring.status(worker);
  const std::int32_t sample = status.sample.load();
  const bool started = status.ready.load() != 0;
  ++replaced_;
  state_->ring.reclaim(worker);
  worker_slot.failed_starts = started ? 0 : worker_slot.failed_starts + 1;
  check(worker_slot.failed_starts < max_failed_starts,
        "[loader] expected {} to run as a worker, but it failed {} times before it took a job: {}",
        options_.program, max_failed_starts, how);
  log(sample < 0 ? fmt::format("{}; a new worker replaces it", how)
                 : fmt::format("{} at {}; a new worker replaces it", how, state_->samples->describe(sample)));
  if (sample >= 0) count_crash(sample);
  start(worker);
  announce_posted();
}

void WorkerPool::count_crash(std::int32_t sample) {
  const auto known = state_->ring.crashing();
  if (std::find(known.begin(), known.end(), sample) != known.end()) return;  // begun before it was skipped
  if (++crashes_[sample] < max_crashes) return;
  crashes_.erase(sample);
  const auto crashing = static_cast<std::int64_t>(known.size());
  ++consecutive_crashing_;
  check(consecutive_crashing_ < max_consecutive_crashing &&
            crashing + 1 < state_->ring.setup().plan.samples && crashing < max_crashing,
        "[loader] expected samples that can be read, but {} of them crashed {} workers each, the last {}",
        crashing + 1, max_crashes, state_->samples->describe(sample));
  state_->ring.add_crashing(sample);
  log(fmt::format("{} crashed {} workers and is skipped from now on", state_->samples->describe(sample),
                  max_crashes));
}

void WorkerPool::clear_suspects(std::span<const std::int32_t> samples) {
  consecutive_crashing_ = 0;
  if (crashes_.empty()) return;
  for (const std::int32_t sample : samples) crashes_.erase(sample);
}

// A worker that has a claim, or could claim a posted job, and makes no progress for the timeout is hung. A
// process is killed, and poll() then replaces it as any dead one; a thread is an Error.
void WorkerPool::check_progress(int worker, bool jobs_wait) {
  WorkerSlot& worker_slot = worker_slots_[static_cast<std::size_t>(worker)];
  const Ring& ring = state_->ring;
  const WorkerStatus& status = ring.status(worker);
  std::uint64_t claimed = 0;
  for (int slot = 0; slot < ring.setup().slots; ++slot)
    if (const SlotWord word = ring.word(slot);
        word.state == SlotState::claimed && word.worker == static_cast<std::uint32_t>(worker))
      claimed = word.packed();
  const std::uint64_t progress = status.progress.load(std::memory_order_acquire);
  const std::int64_t now = monotonic_ns();
  if (progress != worker_slot.progress || claimed != worker_slot.claimed || (claimed == 0 && !jobs_wait)) {
    worker_slot.progress = progress;
    worker_slot.claimed = claimed;
    worker_slot.changed_ns = now;
    return;
  }
  const bool started = status.ready.load() != 0;
  const double timeout_s = started ? options_.timeout_s : std::max(options_.timeout_s, min_start_timeout_s);
  const std::int64_t since_ns =
      claimed != 0 ? worker_slot.changed_ns : std::max(worker_slot.changed_ns, announced_ns_);
  const double elapsed_s = static_cast<double>(now - since_ns) / second_ns;
  if (elapsed_s < timeout_s) return;
  const std::int32_t sample = status.sample.load();
  const std::string where = sample < 0 ? "" : " at " + state_->samples->describe(sample);
  if (options_.kind == WorkerKind::thread) {
    has_hung_thread_ = true;
    fail("[loader] {} has made no progress for {:.1f} s{}; a thread cannot be replaced: use process workers",
         name_of(worker), elapsed_s, where);
  }
  log(fmt::format("{} has made no progress for {:.1f} s{} and is killed", name_of(worker), elapsed_s, where));
  worker_slot.process.kill();
  worker_slot.changed_ns = now;
}

std::vector<pid_t> WorkerPool::pids() const {
  std::vector<pid_t> all;
  for (std::size_t i = 0; i < worker_slots_.size(); ++i)
    if (worker_slots_[i].process.pid() > 0 && state_->ring.status(static_cast<int>(i)).ready.load() != 0)
      all.push_back(worker_slots_[i].process.pid());
  return all;
}

std::string WorkerPool::name_of(int worker) const {
  if (options_.kind == WorkerKind::thread) return fmt::format("worker thread {}", worker);
  return fmt::format("worker {} (process {})", worker,
                     worker_slots_[static_cast<std::size_t>(worker)].process.pid());
}

void WorkerPool::log(const std::string& text) const {
  if (options_.on_message) options_.on_message(text);
}

}  // namespace tandem
