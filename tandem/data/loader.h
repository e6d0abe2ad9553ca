// The loader: training images, augmented by workers ahead of the trainer, in the order of the batch plan. The
// order and the bits are a function of the plan, the recipe, the epoch and the position: how many workers
// there are, of which kind, and which of them died changes nothing.
//
// Images come in blocks of consecutive positions that lie in a ring of shared memory. The ring is bounded:
// workers wait when it is full, the trainer waits when it is empty. A Loader belongs to one thread, which
// also must be the one that outlives it: process workers end with the thread that started them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tandem/augment/recipe.h"
#include "tandem/data/batch_source.h"
#include "tandem/data/batches.h"
#include "tandem/data/image_set.h"
#include "tandem/data/timeline.h"
#include "tandem/data/worker_pool.h"

namespace tandem {

struct LoaderOptions {
  int workers = 0;  // 0: the calling thread fills the blocks itself
  WorkerKind kind = WorkerKind::thread;
  int ahead = 0;  // blocks filled ahead of the trainer; 0: twice the workers, at least 4. The ring has 2 more
  int cpus = 0;   // workers keep to the last so many CPUs; 0: they run anywhere
  double worker_limit_s = 60;  // a worker without progress for so long is replaced
  std::int64_t epochs = 0;     // nothing is prepared beyond epoch `epochs` − 1; 0: endless
  // What process workers execute; empty: this program. Its main() hands over to run_worker() (worker.h) when
  // its first word is `worker`.
  std::string program;
  std::function<void(const std::string&)> on_message;  // a worker was replaced, a sample is left out
  BeforeSample before_sample;                          // in threads; process workers have their own
  Timeline* timeline = nullptr;                        // gets what workers do and what the trainer waits for
};

// A part of the ring, valid until it is released.
struct LoadedBlock {
  std::int64_t epoch = 0, first = 0, count = 0;  // positions
  const std::uint8_t* images = nullptr;          // one after another
  const std::int32_t* samples = nullptr;
  const std::int32_t* labels = nullptr;
  int slot = 0;
  int worker = 0;  // who filled it, and when (CLOCK_MONOTONIC)
  std::int64_t claimed_ns = 0, done_ns = 0;
};

struct LoaderStatistics {
  double waited_ms = 0;  // the trainer, for blocks; without workers, the time it took to fill them
  std::int64_t blocks = 0, images = 0;
  std::int64_t replaced_workers = 0;
  // Samples that ended three workers, and photographs that could not be read.
  std::vector<SkippedSample> skipped;
};

class Loader {
 public:
  // `images` on the CPU, the first plan.samples of them are used.
  Loader(const ImageSet& images, const BatchPlan& plan, const Recipe& recipe, const LoaderOptions& options);
  Loader(std::shared_ptr<const PhotoStore> photos, const BatchPlan& plan, const PhotoRecipe& recipe,
         const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The block from position `first` on, to the next multiple of block_images() or the end of the epoch. What
  // follows, into the next epoch, is prepared meanwhile; asking for anything else starts anew there.
  LoadedBlock take(std::int64_t epoch, std::int64_t first);
  // In any order. At most as many blocks as the ring has slots can be taken at a time.
  void release(const LoadedBlock& block);

  LoaderStatistics statistics() const;
  std::int64_t block_images() const { return place_->ring.setup().block_images; }
  int slots() const { return place_->ring.setup().slots; }
  std::span<std::byte> memory() const { return place_->memory.bytes(); }  // the whole ring, to be pinned
  std::vector<pid_t> worker_pids() const;  // of process workers that have begun to work

 private:
  enum class Use { free, ahead, taken, abandoned };

  void start();
  BlockJob job_at(std::int64_t epoch, std::int64_t first) const;
  void advance();
  void start_anew(std::int64_t epoch, std::int64_t first);
  void post_free();
  void wait_for_front();
  void fill_here();

  LoaderOptions options_;
  std::shared_ptr<const Workplace> place_;
  std::unique_ptr<WorkerPool> pool_;   // none without workers
  std::unique_ptr<ImageMaker> maker_;  // without workers
  std::vector<Use> uses_;              // of the slots
  std::deque<int> ahead_;              // slots in the order of their jobs
  BlockJob next_;                      // to be posted; of count 0 after the last epoch
  LoaderStatistics statistics_;
};

// SLURM_CPUS_PER_TASK, else the CPUs this process may use; at least 2.
int default_worker_count();

}  // namespace tandem
