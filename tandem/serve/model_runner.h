// ModelRunner: the thread that runs one model. Images that come at about the same time are computed together.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tandem/device/pinned.h"
#include "tandem/serve/served_model.h"
#include "tandem/train/prediction.h"

namespace tandem {

struct BatchOptions {
  std::size_t max_batch = 32;
  std::int64_t max_delay_us = 2000;  // that an image waits for others
};

class ModelRunner {
 public:
  struct Job {
    std::shared_ptr<LoadedModel> model;
    std::vector<std::uint8_t> input;  // model->format.bytes()
    // Called from the runner's thread; prediction.error says why there is none.
    std::function<void(Prediction)> done;
    std::int64_t submitted_ns = 0;  // set by submit()
  };
  // Called with the size of every batch.
  using OnBatch = std::function<void(std::size_t images)>;

  // Networks that share `compute` run one at a time, each on all cores.
  ModelRunner(const BatchOptions& options, MatmulPrecision precision, std::shared_ptr<std::mutex> compute,
              OnBatch on_batch = {});
  // Answers what is queued, then ends the thread.
  ~ModelRunner();
  ModelRunner(const ModelRunner&) = delete;
  ModelRunner& operator=(const ModelRunner&) = delete;

  // All from any thread. A batch waits for images that were announced and not yet submitted; none: it does
  // not wait. Each announced image must be submitted or withdrawn.
  void announce(std::size_t images);
  void withdraw(std::size_t images);
  void submit(Job job);
  // Runs other work with the model's module in the runner's thread, in its precision. An exception ends it
  // alone.
  void post(std::function<void()> work);
  // Drops what is queued, without an answer.
  void discard();

 private:
  void run();
  std::vector<Job> take_batch(std::unique_lock<std::mutex>& lock);
  void compute(std::vector<Job> jobs);

  BatchOptions options_;
  MatmulPrecision precision_;
  std::shared_ptr<std::mutex> compute_;
  OnBatch on_batch_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> queue_;
  std::deque<std::function<void()>> other_work_;
  std::size_t announced_ = 0;
  bool is_ending_ = false;
  std::shared_ptr<PinnedBuffer> inputs_;  // of a batch; the runner's thread is its only user
  std::thread thread_;
};

}  // namespace tandem
