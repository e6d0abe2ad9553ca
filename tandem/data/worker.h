// A worker of the loader: takes jobs, fills blocks of the ring, says when one is done. The same loop runs in
// a thread and in a process of its own, which is this program started again with the word `worker`.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tandem/data/image_maker.h"
#include "tandem/data/pipe_queue.h"
#include "tandem/data/ring.h"

namespace tandem {

// Called with each sample before it is worked on; may throw.
using BeforeSample = std::function<void(std::int32_t sample)>;

// What a worker works with; owned by whoever made it.
struct WorkerTask {
  Ring ring;
  ImageMaker* maker = nullptr;         // nobody else uses it
  int number = 0;                      // of the worker, in the ring
  int jobs = -1;                       // the pipe slots to fill come from; its end ends the worker
  const PipeQueue* results = nullptr;  // is told of slots that are done
  BeforeSample before_sample = {};
};

// "sample 17 of the training images"
std::string describe_sample(std::int32_t sample);

// Fills a claimed slot. Each place of the block depends on nothing but the plan, the recipe, the position and
// which samples cannot be used (poisoned ones, bad photographs): the place of one of those is taken by the
// next sample of its pass in the order, or, where the plan does not shuffle, is black with the label −1.
// False: the ring was stopped first.
bool fill_slot(const WorkerTask& task, int slot);

// Works until the jobs end, the ring is stopped or an exception has been reported in the ring.
void work(const WorkerTask& task);

// How a process worker is started: the words it is given, and the descriptors they name, which it must get
// under the same numbers.
struct WorkerFiles {
  int ring = -1, data = -1, jobs = -1;
  PipeQueueEnds results;

  std::vector<int> fds() const { return {ring, data, jobs, results.write, results.lock}; }
};
std::vector<std::string> worker_words(const WorkerFiles& files, int number);

// The whole life of a process worker; `words` as worker_words() gives them. Returns the exit status; an error
// is one line on standard error.
int run_worker(const std::vector<std::string>& words, const BeforeSample& before_sample = {});

}  // namespace tandem
