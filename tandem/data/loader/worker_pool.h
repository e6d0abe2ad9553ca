// The workers of a loader, threads or processes. A process worker that dies or hangs is replaced and its
// claimed jobs are posted again; a sample that crashes three workers is skipped. All supervision happens
// inside poll(), on the trainer's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tandem/data/image_set.h"
#include "tandem/data/loader/worker.h"
#include "tandem/process/child_process.h"
#include "tandem/process/shared_memory.h"

namespace tandem {

enum class WorkerKind { thread, process };

struct WorkerPoolOptions {
  WorkerKind kind = WorkerKind::thread;
  double timeout_s = 60;  // a worker without progress for this long is hung
  std::string program;    // what process workers execute
  std::function<void(const std::string&)> on_message;
  BeforeSample before_sample;  // called by thread workers
};

// The memory the workers and the trainer share. Thread workers share its ownership: a hung thread may outlive
// the loader.
struct SharedLoaderState {
  SharedLoaderState(const ImageSet& images, const RingSetup& setup);
  SharedLoaderState(std::shared_ptr<const PhotoStore> photos, const RingSetup& setup);

  // A reader for one worker in this process.
  std::unique_ptr<SampleReader> make_reader() const;
  // A photograph's path, or describe_sample().
  std::string describe(std::int32_t sample) const;

  SharedMemory memory;
  Ring ring;
  ImageSet images;                           // empty when the samples are photographs
  std::shared_ptr<const PhotoStore> photos;  // null when they are not
};

class WorkerPool {
 public:
  WorkerPool(std::shared_ptr<const SharedLoaderState> state, const WorkerPoolOptions& options);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Tells the workers that a slot is posted.
  void announce(int slot);

  // Waits at most `timeout` for an event (a slot is done, a worker died; wake-ups may be spurious), then
  // replaces workers that died or hung. Error when a worker reported one, when workers cannot be started, or
  // when a thread hangs.
  void poll(std::chrono::milliseconds timeout);

  // A block with these samples is done: crashes while reading them no longer count.
  void clear_suspects(std::span<const std::int32_t> samples);

  std::int64_t replaced() const { return replaced_; }
  std::vector<pid_t> pids() const;  // of process workers that are ready for jobs

 private:
  struct WorkerSlot {
    ChildProcess process;
    std::thread thread;
    int failed_starts = 0;
    // The state at the last poll that saw a change, and when that was.
    std::uint64_t progress = 0;
    std::uint64_t claimed = 0;
    std::int64_t changed_ns = 0;
  };

  void start(int worker);
  void stop() noexcept;
  void copy_data();
  void announce_posted();
  void replace_worker(int worker, const std::string& how);
  void count_crash(std::int32_t sample);
  void check_progress(int worker, bool jobs_wait);
  std::string name_of(int worker) const;
  void log(const std::string& text) const;

  std::shared_ptr<const SharedLoaderState> state_;
  WorkerPoolOptions options_;
  SharedMemory data_;  // labels, then images, for process workers; photographs are in shared memory already
  std::shared_ptr<const Descriptor> jobs_read_;
  Descriptor jobs_write_;
  std::shared_ptr<PipeQueue> results_;
  std::vector<WorkerSlot> worker_slots_;
  std::map<std::int32_t, int> crashes_;  // by sample
  int consecutive_crashing_ = 0;
  std::int64_t replaced_ = 0;
  std::int64_t announced_ns_ = 0, repeated_ns_ = 0;
  bool has_hung_thread_ = false;
};

}  // namespace tandem
