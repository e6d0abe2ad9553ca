// Posts jobs in order, waits for the first one and returns its block.
#include "tandem/data/loader/loader.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/core/parallel.h"

namespace tandem {
namespace {

constexpr int max_prefetch = 4096;

// Blocks are whole local batches: large enough that synchronization costs nothing compared with filling a
// block, small enough that the ring stays in the caches and the first block is ready soon.
std::int64_t images_in_block(const BatchPlan& plan, std::int64_t image_bytes) {
  constexpr std::int64_t wanted_images = 512, max_bytes = 4 << 20;
  const std::int64_t fitting = std::min(wanted_images, max_bytes / std::max<std::int64_t>(image_bytes, 1));
  const std::int64_t batches = std::clamp<std::int64_t>(fitting / plan.local_batch_size(), 1, plan.steps());
  return batches * plan.local_batch_size();
}

// By default two blocks per worker, but no more than a gigabyte when blocks are large.
int prefetch_depth(const LoaderOptions& options, std::int64_t block_bytes) {
  constexpr std::int64_t max_bytes = std::int64_t{1} << 30;
  if (options.prefetch > 0) return options.prefetch;
  if (options.workers == 0) return 0;
  const std::int64_t fitting = max_bytes / std::max<std::int64_t>(block_bytes, 1);
  return static_cast<int>(
      std::clamp<std::int64_t>(fitting, options.workers + 1, std::max(2 * options.workers, 4)));
}

RingSetup ring_setup(const detail::SampleStore& samples, const BatchPlan& plan, const Transform& transform,
                     const LoaderOptions& options) {
  check_batch_plan(plan);
  check(plan.samples <= samples.count(), "[loader] expected {} samples, got {}", plan.samples,
        samples.count());
  const ImageSize size = samples.image_size(transform);
  const std::int64_t block_images = images_in_block(plan, size.bytes());
  return {.plan = plan,
          .image = size,
          .transform = transform,
          .format = samples.format(),
          .fail_on_bad = samples.fails_on_bad(),
          .slots = prefetch_depth(options, block_images * size.bytes()) + 2,
          .workers = std::max(options.workers, 1),
          .cpus = options.cpus,
          .block_images = block_images};
}

}  // namespace

void check_loader_options(const LoaderOptions& options) {
  check(options.workers >= 0 && options.workers <= max_workers, "[loader] expected 0 to {} workers, got {}",
        max_workers, options.workers);
  check(options.prefetch >= 0 && options.prefetch <= max_prefetch,
        "[loader] expected prefetch from 0 to {} blocks, got {}", max_prefetch, options.prefetch);
  check(options.worker_timeout_s > 0 && std::isfinite(options.worker_timeout_s),
        "[loader] expected a worker timeout of more than 0 seconds, got {}", options.worker_timeout_s);
  check(options.epochs >= 0, "[loader] expected 0 or more epochs, got {}", options.epochs);
  check(options.workers == 0 || options.kind == WorkerKind::thread || !std::getenv(worker_marker),
        "[loader] expected the program to call run_worker_if_asked() first thing in main(), but it is a "
        "worker that loads "
        "data");
}

Loader::Loader(std::shared_ptr<const detail::SampleStore> samples, const BatchPlan& plan,
               const Transform& transform, const LoaderOptions& options)
    : options_(options) {
  check_loader_options(options);
  const RingSetup setup = ring_setup(*samples, plan, transform, options);
  state_ = std::make_shared<const SharedLoaderState>(std::move(samples), setup);
  uses_.resize(static_cast<std::size_t>(slots()), Use::free);
  if (options_.workers == 0) {
    reader_ = state_->make_reader();
    return;
  }
  pool_ = std::make_unique<WorkerPool>(
      state_, WorkerPoolOptions{.kind = options_.kind,
                                .timeout_s = options_.worker_timeout_s,
                                .program = options_.program.empty() ? "/proc/self/exe" : options_.program,
                                .on_message = options_.on_message,
                                .before_sample = options_.before_sample});
}

Loader::~Loader() = default;

BlockJob Loader::job_at(std::int64_t epoch, std::int64_t first) const {
  if (options_.epochs > 0 && epoch >= options_.epochs) return {};
  const std::int64_t end = (first / block_images() + 1) * block_images();
  return {epoch, first, std::min(end, positions()) - first};
}

void Loader::advance() {
  const std::int64_t end = next_.first + next_.count;
  next_ = end < positions() ? job_at(next_.epoch, end) : job_at(next_.epoch + 1, 0);
}

void Loader::restart_at(std::int64_t epoch, std::int64_t first) {
  for (const int slot : prefetched_) uses_[static_cast<std::size_t>(slot)] = Use::abandoned;
  prefetched_.clear();
  next_ = job_at(epoch, first);
}

// Posts the next jobs to all free slots. An abandoned slot that a worker has claimed is free once it is done.
void Loader::post_free_slots() {
  const Ring& ring = state_->ring;
  for (int slot = 0; slot < slots(); ++slot) {
    Use& use = uses_[static_cast<std::size_t>(slot)];
    if (use == Use::abandoned) {
      if (ring.word(slot).state == SlotState::done) {
        ring.free(slot);
        use = Use::free;
      } else if (ring.withdraw(slot)) {
        use = Use::free;
      }
    }
    if (use != Use::free || next_.count == 0) continue;
    ring.post(slot, next_);
    use = Use::prefetched;
    prefetched_.push_back(slot);
    advance();
    if (!pool_) return;  // without workers one job at a time, filled by acquire()
    pool_->announce(slot);
  }
}

LoadedBlock Loader::acquire(std::int64_t epoch, std::int64_t first) {
  const Ring& ring = state_->ring;
  expect(epoch >= 0 && first >= 0 && first < positions() &&
         (options_.epochs == 0 || epoch < options_.epochs));
  const BlockJob follows = prefetched_.empty() ? next_ : ring.slot(prefetched_.front()).job;
  if (follows.count == 0 || follows.epoch != epoch || follows.first != first) restart_at(epoch, first);
  if (prefetched_.empty()) post_free_slots();
  if (pool_)
    wait_for_front();
  else
    fill_on_this_thread();
  const int slot = prefetched_.front();
  prefetched_.pop_front();
  uses_[static_cast<std::size_t>(slot)] = Use::acquired;
  const Slot& from = ring.slot(slot);
  const LoadedBlock block{.epoch = from.job.epoch,
                          .first = from.job.first,
                          .count = from.job.count,
                          .images = ring.images(slot),
                          .samples = ring.samples(slot),
                          .labels = ring.labels(slot),
                          .slot = slot,
                          .worker = static_cast<int>(ring.word(slot).worker),
                          .claimed_ns = from.claimed_ns,
                          .done_ns = from.done_ns};
  if (pool_) pool_->clear_suspects({block.samples, static_cast<std::size_t>(block.count)});
  if (pool_ && options_.timeline)
    options_.timeline->add({TrackKind::worker, block.worker}, "augment", block.claimed_ns, block.done_ns,
                           {"positions", block.epoch, block.first, block.count});
  ++statistics_.blocks;
  statistics_.images += block.count;
  return block;
}

void Loader::wait_for_front() {
  const Ring& ring = state_->ring;
  const auto is_done = [&] {
    return !prefetched_.empty() && ring.word(prefetched_.front()).state == SlotState::done;
  };
  pool_->poll(std::chrono::milliseconds(0));
  if (is_done()) return;
  const BlockJob job = prefetched_.empty() ? next_ : ring.slot(prefetched_.front()).job;
  const TimelineSpan span(options_.timeline, "wait for images",
                          {"positions", job.epoch, job.first, job.count});
  const Stopwatch waiting;
  // Poll regularly even without events: a hung worker sends none.
  const std::chrono::milliseconds tick(std::clamp(std::lround(options_.worker_timeout_s * 250), 1L, 100L));
  while (!is_done()) {
    expect(!prefetched_.empty() || std::find(uses_.begin(), uses_.end(), Use::abandoned) != uses_.end());
    pool_->poll(tick);
    if (prefetched_.empty()) post_free_slots();
  }
  statistics_.waited_ms += waiting.elapsed_ms();
}

void Loader::fill_on_this_thread() {
  expect(!prefetched_.empty());
  const Stopwatch filling;
  const int slot = prefetched_.front();
  const Ring& ring = state_->ring;
  const BlockJob& job = ring.slot(slot).job;
  const TimelineSpan span(options_.timeline, "augment", {"positions", job.epoch, job.first, job.count});
  const WorkerTask task{.ring = ring, .reader = reader_.get(), .before_sample = options_.before_sample};
  expect(ring.claim(slot, 0));
  try {
    fill_slot(task, slot);
  } catch (...) {
    const std::int32_t sample = ring.status(0).sample.load();
    ring.reclaim(0);
    fail("[loader] {}: {}", state_->samples->describe(sample), exception_text());
  }
  expect(ring.finish(slot, 0));
  statistics_.waited_ms += filling.elapsed_ms();
}

void Loader::release(const LoadedBlock& block) {
  Use& use = uses_[static_cast<std::size_t>(block.slot)];
  expect(use == Use::acquired);
  state_->ring.free(block.slot);
  use = Use::free;
  if (pool_) post_free_slots();
}

LoaderStatistics Loader::statistics() const {
  LoaderStatistics all = statistics_;
  if (pool_) all.replaced_workers = pool_->replaced();
  const auto skip = [&](const BadSample& bad) {
    all.skipped.push_back({bad.sample, state_->samples->describe(bad.sample), bad.reason, bad.kind});
  };
  for (const std::int32_t sample : state_->ring.crashing())
    skip({sample, "crashed every worker that read it"});
  for (const BadSample& bad : state_->samples->bad())
    if (bad.sample < state_->ring.setup().plan.samples) skip(bad);
  for (const BadSample& bad : state_->ring.bad()) skip(bad);
  return all;
}

std::vector<pid_t> Loader::worker_pids() const {
  return pool_ ? pool_->pids() : std::vector<pid_t>{};
}

int default_worker_count() {
  int count = usable_cpus();
  if (const char* text = std::getenv("SLURM_CPUS_PER_TASK")) {
    int given = 0;
    const auto [end, error] = std::from_chars(text, text + std::strlen(text), given);
    if (error == std::errc() && *end == 0 && given > 0) count = given;
  }
  return std::clamp(count, 2, max_workers);
}

}  // namespace tandem
