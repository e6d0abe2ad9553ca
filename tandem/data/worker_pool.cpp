// Keeping workers at work.
#include "tandem/data/worker_pool.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/data/wide_affinity.h"

namespace tandem {
namespace {

constexpr int most_failed_starts = 3, fatal_deaths = 3, most_poisoned_in_a_row = 8;
constexpr std::int64_t second_ns = 1'000'000'000;
constexpr double least_start_s = 10;  // a program takes its time to be loaded

}  // namespace

Workplace::Workplace(const ImageSet& given, const RingSetup& setup)
    : memory(Ring::bytes_for(setup), "the ring", "lower --ahead"),
      ring(Ring::make(memory.bytes(), setup)),
      images(given.slice(0, setup.plan.samples)) {
  images.images = images.images.contiguous();
  images.labels = images.labels.contiguous();
}

Workplace::Workplace(std::shared_ptr<const PhotoStore> given, const RingSetup& setup)
    : memory(Ring::bytes_for(setup), "the ring", "lower --ahead"),
      ring(Ring::make(memory.bytes(), setup)),
      photos(std::move(given)) {}

std::unique_ptr<ImageMaker> Workplace::maker() const {
  if (photos) return photo_maker(ring.setup(), photos->table());
  return array_maker(ring.setup(), images.images.data<std::uint8_t>(), images.labels.data<std::int32_t>());
}

std::string Workplace::describe(std::int32_t sample) const {
  return photos ? photos->table().path(sample) : describe_sample(sample);
}

WorkerPool::WorkerPool(std::shared_ptr<const Workplace> place, const WorkerPoolOptions& options)
    : place_(std::move(place)), options_(options) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) fail("[loader] cannot make a pipe for jobs: {}", system_reason(errno));
  jobs_read_ = std::make_shared<const Descriptor>(fds[0]);
  jobs_write_ = Descriptor(fds[1]);
  ::fcntl(jobs_write_.get(), F_SETFL, O_NONBLOCK);
  results_ = std::make_shared<PipeQueue>();
  if (options_.kind == WorkerKind::process && !place_->photos) copy_data();
  seats_.resize(static_cast<std::size_t>(place_->ring.setup().workers));
  try {
    for (int number = 0; number < place_->ring.setup().workers; ++number) start(number);
  } catch (...) {
    end();
    throw;
  }
}

WorkerPool::~WorkerPool() {
  end();
}

void WorkerPool::end() noexcept {
  place_->ring.stop();
  jobs_write_.reset();
  for (const Seat& seat : seats_) seat.process.kill();
  for (Seat& seat : seats_) {
    if (!seat.thread.joinable()) continue;
    if (stuck_)
      seat.thread.detach();
    else
      seat.thread.join();
  }
}

void WorkerPool::copy_data() {
  const ImageSet& set = place_->images;
  const std::int64_t label_bytes = 4 * set.count(), image_bytes = set.images.numel();
  data_ = SharedMemory(label_bytes + image_bytes, "the data set for process workers",
                       "use --worker-kind thread or fewer images (--limit)");
  std::memcpy(data_.data(), set.labels.bytes(), static_cast<std::size_t>(label_bytes));
  std::memcpy(data_.data() + label_bytes, set.images.bytes(), static_cast<std::size_t>(image_bytes));
}

void WorkerPool::start(int number) {
  Seat& seat = seats_[static_cast<std::size_t>(number)];
  WorkerStatus& status = place_->ring.status(number);
  status.ready.store(0);
  status.sample.store(-1);
  seat.since_ns = monotonic_ns();
  const WideAffinity anywhere;
  if (options_.kind == WorkerKind::process) {
    const WorkerFiles files{.ring = place_->memory.fd(),
                            .data = place_->photos ? place_->photos->memory().fd() : data_.fd(),
                            .jobs = jobs_read_->get(),
                            .results = results_->ends()};
    seat.process = WorkerProcess(options_.program, worker_words(files, number), files.fds());
    return;
  }
  // The thread keeps what it uses: should it never come back, nothing is taken from under it.
  const auto life = [place = place_, jobs = jobs_read_, results = results_, number,
                     before_sample = options_.before_sample] {
    const std::unique_ptr<ImageMaker> maker = place->maker();
    work({.ring = place->ring,
          .maker = maker.get(),
          .number = number,
          .jobs = jobs->get(),
          .results = results.get(),
          .before_sample = before_sample});
  };
  try {
    seat.thread = std::thread(life);
  } catch (const std::system_error& error) {
    fail("[loader] cannot start worker thread {}: {}", number, system_reason(error.code().value()));
  }
}

// A pipe that is full holds thousands of tokens: then nobody lacks one now, and look() repeats them.
void WorkerPool::announce(int slot) {
  const std::int32_t token = slot;
  ssize_t written;
  do written = ::write(jobs_write_.get(), &token, sizeof(token));
  while (written < 0 && errno == EINTR);
  if (written != sizeof(token) && errno != EAGAIN)
    fail("[loader] cannot hand out a job: {}", system_reason(errno));
  announced_ns_ = repeated_ns_ = monotonic_ns();
}

// Again for every posted slot: a worker may have died, or been stopped, with a token in its hand.
void WorkerPool::announce_posted() {
  const std::int64_t announced = announced_ns_;
  for (int slot = 0; slot < place_->ring.setup().slots; ++slot)
    if (place_->ring.word(slot).state == SlotState::posted) announce(slot);
  announced_ns_ = announced;
  repeated_ns_ = monotonic_ns();
}

void WorkerPool::look(std::chrono::milliseconds timeout) {
  std::vector<pollfd> wanted{{results_->ends().read, POLLIN, 0}};
  const bool processes = options_.kind == WorkerKind::process;
  if (processes)
    for (const Seat& seat : seats_) wanted.push_back({seat.process.end_fd(), POLLIN, 0});
  const int found =
      ::poll(wanted.data(), static_cast<nfds_t>(wanted.size()), static_cast<int>(timeout.count()));
  if (found < 0 && errno != EINTR) fail("[loader] cannot wait for workers: {}", system_reason(errno));
  if (found > 0 && wanted[0].revents != 0)
    for (std::int64_t left = results_->length(); left > 0; --left) results_->get();
  if (const auto failure = place_->ring.failure()) {
    const std::string where = failure->sample < 0 ? "a worker" : place_->describe(failure->sample);
    fail("[loader] {}: {}", where, failure->text);
  }
  if (processes)
    for (int number = 0; number < static_cast<int>(seats_.size()); ++number) {
      Seat& seat = seats_[static_cast<std::size_t>(number)];
      const bool may_have_ended =
          seat.process.end_fd() < 0 || wanted[1 + static_cast<std::size_t>(number)].revents != 0;
      if (!may_have_ended) continue;
      const std::string name = name_of(number);
      if (const auto how = seat.process.ended()) bury(number, name + " " + *how);
    }
  // While there is news, somebody is at work; one that stands still shows when all the others wait for it.
  if (timeout.count() == 0 || found > 0) return;
  bool work_waits = false;
  for (int slot = 0; slot < place_->ring.setup().slots; ++slot)
    work_waits = work_waits || place_->ring.word(slot).state == SlotState::posted;
  if (work_waits && monotonic_ns() - repeated_ns_ > second_ns) announce_posted();
  for (int number = 0; number < static_cast<int>(seats_.size()); ++number) watch(number, work_waits);
}

// What the dead worker had claimed is posted again, its seat gets another.
void WorkerPool::bury(int number, const std::string& how) {
  Seat& seat = seats_[static_cast<std::size_t>(number)];
  const WorkerStatus& status = place_->ring.status(number);
  const std::int32_t sample = status.sample.load();
  const bool started = status.ready.load() != 0;
  ++replaced_;
  place_->ring.take_back(number);
  seat.failed_starts = started ? 0 : seat.failed_starts + 1;
  check(seat.failed_starts < most_failed_starts,
        "[loader] expected {} to run as a worker, but it failed {} times before it took a job: {}",
        options_.program, most_failed_starts, how);
  say(sample < 0 ? fmt::format("{}; another takes its place", how)
                 : fmt::format("{} at {}; another takes its place", how, place_->describe(sample)));
  if (sample >= 0) count_death(sample);
  start(number);
  announce_posted();
}

void WorkerPool::count_death(std::int32_t sample) {
  const auto known = place_->ring.poisoned();
  if (std::find(known.begin(), known.end(), sample) != known.end()) return;  // begun before it was known
  if (++deaths_[sample] < fatal_deaths) return;
  deaths_.erase(sample);
  const auto poisoned = static_cast<std::int64_t>(known.size());
  ++poisoned_in_a_row_;
  check(poisoned_in_a_row_ < most_poisoned_in_a_row && poisoned + 1 < place_->ring.setup().plan.samples &&
            poisoned < most_poisoned,
        "[loader] expected samples that can be worked on, but {} of them ended {} workers each, the last {}",
        poisoned + 1, fatal_deaths, place_->describe(sample));
  place_->ring.add_poisoned(sample);
  say(fmt::format("{} ended {} workers and is left out from now on", place_->describe(sample), fatal_deaths));
}

void WorkerPool::forgive(std::span<const std::int32_t> samples) {
  poisoned_in_a_row_ = 0;
  if (deaths_.empty()) return;
  for (const std::int32_t sample : samples) deaths_.erase(sample);
}

// A worker with a claim, or with jobs to be had, that has not moved for the limit is killed; its end is then
// seen like any other.
void WorkerPool::watch(int number, bool work_waits) {
  Seat& seat = seats_[static_cast<std::size_t>(number)];
  const Ring& ring = place_->ring;
  const WorkerStatus& status = ring.status(number);
  std::uint64_t claimed = 0;
  for (int slot = 0; slot < ring.setup().slots; ++slot)
    if (const SlotWord word = ring.word(slot);
        word.state == SlotState::claimed && word.worker == static_cast<std::uint32_t>(number))
      claimed = word.packed();
  const std::uint64_t progress = status.progress.load(std::memory_order_acquire);
  const std::int64_t now = monotonic_ns();
  if (progress != seat.progress || claimed != seat.claimed || (claimed == 0 && !work_waits)) {
    seat.progress = progress;
    seat.claimed = claimed;
    seat.since_ns = now;
    return;
  }
  const bool started = status.ready.load() != 0;
  const double limit_s = started ? options_.limit_s : std::max(options_.limit_s, least_start_s);
  const std::int64_t since = claimed != 0 ? seat.since_ns : std::max(seat.since_ns, announced_ns_);
  const double still_s = static_cast<double>(now - since) / second_ns;
  if (still_s < limit_s) return;
  const std::int32_t sample = status.sample.load();
  const std::string where = sample < 0 ? "" : " at " + place_->describe(sample);
  if (options_.kind == WorkerKind::thread) {
    stuck_ = true;
    fail(
        "[loader] {} has made no progress for {:.1f} s{}; a thread cannot be replaced: use --worker-kind "
        "process",
        name_of(number), still_s, where);
  }
  say(fmt::format("{} has made no progress for {:.1f} s{} and is killed", name_of(number), still_s, where));
  seat.process.kill();
  seat.since_ns = now;
}

std::vector<pid_t> WorkerPool::pids() const {
  std::vector<pid_t> all;
  for (std::size_t number = 0; number < seats_.size(); ++number)
    if (seats_[number].process.pid() > 0 && place_->ring.status(static_cast<int>(number)).ready.load() != 0)
      all.push_back(seats_[number].process.pid());
  return all;
}

std::string WorkerPool::name_of(int number) const {
  if (options_.kind == WorkerKind::thread) return fmt::format("worker thread {}", number);
  return fmt::format("worker {} (process {})", number,
                     seats_[static_cast<std::size_t>(number)].process.pid());
}

void WorkerPool::say(const std::string& text) const {
  if (options_.on_message) options_.on_message(text);
}

}  // namespace tandem
