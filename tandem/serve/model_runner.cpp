#include "tandem/serve/model_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/train/evaluation_mode.h"
#include "tandem/train/evaluator.h"
#include "tandem/train/predict_images.h"

namespace tandem {

ModelRunner::ModelRunner(const BatchOptions& options, MatmulPrecision precision,
                         std::shared_ptr<std::mutex> compute, OnBatch on_batch)
    : options_(options),
      precision_(precision),
      compute_(std::move(compute)),
      on_batch_(std::move(on_batch)),
      thread_([this] { run(); }) {}

ModelRunner::~ModelRunner() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ModelRunner::announce(std::size_t images) {
  const std::lock_guard lock(mutex_);
  announced_ += images;
}

void ModelRunner::withdraw(std::size_t images) {
  {
    const std::lock_guard lock(mutex_);
    expect(announced_ >= images);
    announced_ -= images;
  }
  changed_.notify_all();
}

void ModelRunner::submit(Job job) {
  {
    const std::lock_guard lock(mutex_);
    expect(announced_ > 0 && job.input.size() == job.model->format.bytes());
    --announced_;
    job.submitted_ns = monotonic_ns();
    queue_.push_back(std::move(job));
  }
  changed_.notify_all();
}

void ModelRunner::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    other_work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void ModelRunner::discard() {
  std::deque<Job> jobs;  // destroyed after the lock
  std::deque<std::function<void()>> work;
  const std::lock_guard lock(mutex_);
  jobs.swap(queue_);
  work.swap(other_work_);
}

void ModelRunner::run() {
  const ConstantWeights constant;
  const MatmulPrecisionScope precision(precision_);  // it belongs to a thread
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !queue_.empty() || !other_work_.empty() || is_ending_; });
    if (!queue_.empty()) {
      std::vector<Job> jobs = take_batch(lock);
      lock.unlock();
      compute(std::move(jobs));
      lock.lock();
    }
    if (!other_work_.empty()) {
      const std::function<void()> work = std::move(other_work_.front());
      other_work_.pop_front();
      lock.unlock();
      try {
        const std::lock_guard alone(*compute_);
        work();
      } catch (const std::exception&) {
      }
      lock.lock();
    }
    if (is_ending_ && queue_.empty() && other_work_.empty()) return;
  }
}

std::vector<ModelRunner::Job> ModelRunner::take_batch(std::unique_lock<std::mutex>& lock) {
  // What came while the batch before was computed has waited already.
  const std::int64_t left_ns = queue_.front().submitted_ns + 1000 * options_.max_delay_us - monotonic_ns();
  changed_.wait_for(lock, std::chrono::nanoseconds(left_ns), [&] {
    return queue_.empty() || queue_.size() >= options_.max_batch || announced_ == 0 || is_ending_;
  });
  std::vector<Job> jobs;
  if (queue_.empty()) return jobs;                                  // discarded meanwhile
  const std::shared_ptr<LoadedModel> model = queue_.front().model;  // versions are not mixed
  while (!queue_.empty() && jobs.size() < options_.max_batch && queue_.front().model == model) {
    jobs.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return jobs;
}

void ModelRunner::compute(std::vector<Job> jobs) {
  if (jobs.empty()) return;
  LoadedModel& loaded = *jobs.front().model;
  const InputFormat& format = loaded.format;
  std::vector<Prediction> answers(jobs.size());
  try {
    const std::size_t bytes = jobs.size() * format.bytes();
    if (!inputs_ || inputs_->size() < bytes)
      inputs_ = std::make_shared<PinnedBuffer>(std::max(jobs.size(), options_.max_batch) * format.bytes(),
                                               device_of(*loaded.model.module));
    for (std::size_t i = 0; i < jobs.size(); ++i)
      std::memcpy(inputs_->data() + i * format.bytes(), jobs[i].input.data(), format.bytes());
    const std::int64_t row = format.width * format.channels;
    const Tensor inputs =
        Tensor::borrow(inputs_->data(), {std::ssize(jobs), format.height, format.width, format.channels},
                       {format.height * row, row, format.channels, 1}, DType::u8, cpu_device, inputs_);
    const std::lock_guard alone(*compute_);
    const auto rows = predict_probabilities(*loaded.model.module, loaded.model.info, inputs);
    for (std::size_t i = 0; i < jobs.size(); ++i) set_prediction(answers[i], rows[i], loaded.model.info);
  } catch (const std::exception& error) {
    for (Prediction& answer : answers) {
      answer.error = error.what();
      answer.error_kind = SkipKind::unreadable;
    }
  }
  if (on_batch_) on_batch_(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) try {
      jobs[i].done(std::move(answers[i]));
    } catch (const std::exception&) {  // out of memory: its reply says that there is none
    }
}

}  // namespace tandem
