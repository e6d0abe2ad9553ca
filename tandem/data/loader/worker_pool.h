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

#include "tandem/data/loader/sample_store.h"
#include "tandem/data/loader/worker.h"
#include "tandem/data/loader/worker_kind.h"
#include "tandem/process/child_process.h"
#include "tandem/process/shared_memory.h"

namespace tandem {

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
  SharedLoaderState(std::shared_ptr<const detail::SampleStore> samples, const RingSetup& setup);

  // A reader for one worker in this process.
  std::unique_ptr<SampleReader> make_reader() const {
    return samples->make_reader(ring.setup().transform, ring.setup().image);
  }

  SharedMemory memory;
  Ring ring;
  std::shared_ptr<const detail::SampleStore> samples;
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
  void announce_posted();
  void replace_worker(int worker, const std::string& how);
  void count_crash(std::int32_t sample);
  void check_progress(int worker, bool jobs_wait);
  std::string name_of(int worker) const;
  void log(const std::string& text) const;

  std::shared_ptr<const SharedLoaderState> state_;
  WorkerPoolOptions options_;
  std::shared_ptr<const SharedMemory> data_;  // for process workers
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
