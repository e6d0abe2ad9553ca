// The workers of a loader, threads or processes: started, woken by jobs, and for processes watched over. One
// that dies or stands still is replaced and what it had claimed is posted again; a sample that kills three
// workers is left out. All of it happens inside look(), on the trainer's thread.
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
#include "tandem/data/shared_memory.h"
#include "tandem/data/worker.h"
#include "tandem/data/worker_process.h"

namespace tandem {

enum class WorkerKind { thread, process };

struct WorkerPoolOptions {
  WorkerKind kind = WorkerKind::thread;
  double limit_s = 60;  // without progress
  std::string program;  // what processes execute
  std::function<void(const std::string&)> on_message;
  BeforeSample before_sample;  // of threads
};

// The memory the workers and the trainer share. Threads hold it too: one that never comes back must not find
// it gone.
struct Workplace {
  Workplace(const ImageSet& images, const RingSetup& setup);
  Workplace(std::shared_ptr<const PhotoStore> photos, const RingSetup& setup);

  // For one worker in this process.
  std::unique_ptr<ImageMaker> maker() const;
  // A photograph's path, or describe_sample().
  std::string describe(std::int32_t sample) const;

  SharedMemory memory;
  Ring ring;
  ImageSet images;  // or photographs
  std::shared_ptr<const PhotoStore> photos;
};

class WorkerPool {
 public:
  WorkerPool(std::shared_ptr<const Workplace> place, const WorkerPoolOptions& options);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Tells the workers that a slot is posted.
  void announce(int slot);

  // Waits at most `timeout` for news (a slot done, a worker dead; news may come for nothing) and sees to the
  // workers. Error when a worker reported one, when workers cannot be started, or a thread stands still.
  void look(std::chrono::milliseconds timeout);

  // A block is done: its samples have killed nobody after all.
  void forgive(std::span<const std::int32_t> samples);

  std::int64_t replaced() const { return replaced_; }
  std::vector<pid_t> pids() const;  // of process workers that have begun to work

 private:
  struct Seat {
    WorkerProcess process;
    std::thread thread;
    int failed_starts = 0;
    // What was seen last, and since when that has not changed.
    std::uint64_t progress = 0, claimed = 0;
    std::int64_t since_ns = 0;
  };

  void start(int number);
  void end() noexcept;
  void copy_data();
  void announce_posted();
  void bury(int number, const std::string& how);
  void count_death(std::int32_t sample);
  void watch(int number, bool work_waits);
  std::string name_of(int number) const;
  void say(const std::string& text) const;

  std::shared_ptr<const Workplace> place_;
  WorkerPoolOptions options_;
  SharedMemory data_;  // labels, then images, for processes; photographs are shared already
  std::shared_ptr<const Descriptor> jobs_read_;
  Descriptor jobs_write_;
  std::shared_ptr<PipeQueue> results_;
  std::vector<Seat> seats_;
  std::map<std::int32_t, int> deaths_;  // by sample
  int poisoned_in_a_row_ = 0;
  std::int64_t replaced_ = 0;
  std::int64_t announced_ns_ = 0, repeated_ns_ = 0;
  bool stuck_ = false;
};

}  // namespace tandem
