// The loader: prefetches training images, augmented by workers, in the order of the batch plan. The order and
// the bits are a function of the plan, the recipe, the epoch and the position; the number and kind of
// workers, and crashes of workers, change nothing.
//
// Images come in blocks of consecutive local positions (those of the plan's part) in a ring of shared memory.
// The ring is bounded: workers wait when it is full, the trainer waits when it is empty. A Loader is used by
// one thread, which must outlive it: the kernel kills process workers when the thread that started them ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tandem/augment/transform.h"
#include "tandem/data/batches.h"
#include "tandem/data/loader/batch_source.h"
#include "tandem/data/loader/timeline.h"
#include "tandem/data/loader/worker_pool.h"

namespace tandem {

struct LoaderOptions {
  int workers = 0;  // 0: the calling thread fills the blocks itself
  WorkerKind kind = WorkerKind::thread;
  int prefetch = 0;  // blocks prefetched; 0: twice the workers, at least 4. The ring has 2 more slots
  int cpus = 0;      // workers are bound to the last `cpus` CPUs; 0: unbound
  double worker_timeout_s = 60;  // a worker without progress for this long is hung and replaced
  std::int64_t epochs = 0;       // nothing is prefetched beyond epoch `epochs` − 1; 0: no limit
  // What process workers execute; empty: this program. Its main() must call run_worker_if_asked().
  std::string program;
  std::function<void(const std::string&)> on_message;  // a worker was replaced, or a sample is skipped
  BeforeSample before_sample;    // called by thread workers; process workers have their own
  Timeline* timeline = nullptr;  // records the work of workers and the waits of the trainer
};

// Throws Error for values out of range.
void check_loader_options(const LoaderOptions& options);

// Part of the ring, valid until it is released.
struct LoadedBlock {
  // Local positions first … first + count − 1 of the epoch.
  std::int64_t epoch = 0, first = 0, count = 0;
  const std::uint8_t* images = nullptr;  // contiguous
  const std::int32_t* samples = nullptr;
  const std::int32_t* labels = nullptr;
  int slot = 0;
  int worker = 0;               // the worker that filled it
  std::int64_t claimed_ns = 0;  // CLOCK_MONOTONIC
  std::int64_t done_ns = 0;
};

struct LoaderStatistics {
  double waited_ms = 0;  // the trainer's wait for blocks; without workers, the time to fill them
  std::int64_t blocks = 0;
  std::int64_t images = 0;
  std::int64_t replaced_workers = 0;
  // Samples that crashed three workers, and photographs that could not be read.
  std::vector<SkippedSample> skipped;
};

class Loader {
 public:
  // Loads the first plan.samples of the samples.
  Loader(std::shared_ptr<const detail::SampleStore> samples, const BatchPlan& plan,
         const Transform& transform, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The block from local position `first` to the next multiple of block_images() or the end of the epoch.
  // Blocks that follow, also of the next epoch, are prefetched; acquiring any other block discards them and
  // restarts there.
  LoadedBlock acquire(std::int64_t epoch, std::int64_t first);
  // Blocks may be released in any order. At most slots() blocks can be held at a time.
  void release(const LoadedBlock& block);

  LoaderStatistics statistics() const;
  std::int64_t image_bytes() const { return state_->ring.setup().image.bytes(); }
  std::int64_t block_images() const { return state_->ring.setup().block_images; }
  int slots() const { return state_->ring.setup().slots; }
  std::span<std::byte> memory() const { return state_->memory.bytes(); }  // the whole ring, to be pinned
  std::vector<pid_t> worker_pids() const;  // of process workers that are ready for jobs

 private:
  enum class Use { free, prefetched, acquired, abandoned };

  std::int64_t positions() const { return state_->ring.setup().plan.local_positions(); }
  BlockJob job_at(std::int64_t epoch, std::int64_t first) const;
  void advance();
  void restart_at(std::int64_t epoch, std::int64_t first);
  void post_free_slots();
  void wait_for_front();
  void fill_on_this_thread();

  LoaderOptions options_;
  std::shared_ptr<const SharedLoaderState> state_;
  std::unique_ptr<WorkerPool> pool_;      // null without workers
  std::unique_ptr<SampleReader> reader_;  // null with workers
  std::vector<Use> uses_;                 // by slot
  std::deque<int> prefetched_;            // slots in the order of their jobs
  BlockJob next_;                         // the next job to post; of count 0 after the last epoch
  LoaderStatistics statistics_;
};

// SLURM_CPUS_PER_TASK, else the CPUs this process may use; at least 2.
int default_worker_count();

}  // namespace tandem
