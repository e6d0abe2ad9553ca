// A worker of the loader: claims jobs, fills blocks of the ring and reports when one is done. The same loop
// runs in a thread and in a process, which is this program started again with the argument `worker`.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tandem/data/loader/ring.h"
#include "tandem/data/loader/sample_reader.h"
#include "tandem/process/pipe_queue.h"

namespace tandem {

// Called with each sample before it is read; may throw.
using BeforeSample = std::function<void(std::int32_t sample)>;

// What a worker uses; owned by the caller.
struct WorkerTask {
  Ring ring;
  SampleReader* reader = nullptr;      // not shared with other workers
  int worker = 0;                      // index of the worker in the ring
  int jobs = -1;                       // pipe with the indices of posted slots; the worker ends at its end
  const PipeQueue* results = nullptr;  // receives the indices of finished slots
  BeforeSample before_sample = {};
  // Of a process, to which that of the ring's plan is no memory. Without classes: the plan's.
  ClassTable balanced = {};
};

// The text of the exception that is being handled.
std::string exception_text();
// Reports it in the ring, and wakes the trainer.
void report_exception(const Ring& ring, std::int32_t sample, const PipeQueue& results);

// Fills a claimed slot. The image at a position depends only on the plan, the recipe, the position and which
// samples cannot be used (crashing ones, unreadable photographs). An unusable sample is replaced by the next
// one in the order of its pass; where the plan does not replace it, the image is black with the label −1.
// False: the ring was stopped before the slot was filled.
bool fill_slot(const WorkerTask& task, int slot);

// Runs until the jobs end, the ring is stopped or an exception has been reported in the ring.
void run_worker_loop(const WorkerTask& task);

// Set in the environment of process workers. A program that was started as a worker but does not call
// run_worker_if_asked() must not start workers of its own.
inline constexpr const char* worker_marker = "TANDEM_WORKER";
// Tells process workers which operations of the user there are (augment/own_operation_table.h).
inline constexpr const char* own_operations_variable = "TANDEM_OWN_OPERATIONS";
// Tells process workers that image_decoder() decodes here, with its max_pixels(). Their program sets one.
inline constexpr const char* decoder_variable = "TANDEM_IMAGE_DECODER";

// The descriptors of a process worker, which it must inherit under the same numbers.
struct WorkerFiles {
  int ring = -1;
  int data = -1;
  int jobs = -1;
  PipeQueueEnds results;

  std::vector<int> fds() const { return {ring, data, jobs, results.write, results.lock}; }
};
// How a process worker is started: its command line after argv[0], and its environment ("NAME=value").
std::vector<std::string> worker_arguments(const WorkerFiles& files, int worker);
std::vector<std::string> worker_environment();

// The main function of a process worker; `arguments` as worker_arguments() gives them. Returns the exit
// status; an error is one line on standard error.
int run_worker(const std::vector<std::string>& arguments, const BeforeSample& before_sample = {});

}  // namespace tandem
