// Sums stay on the device until the end of run(), so that no step waits for the host.
#include "tandem/train/module_engine.h"

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/backward.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/compare.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/gather.h"
#include "tandem/ops/reduce.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/tape.h"

namespace tandem {

ModuleEngine::ModuleEngine(const TrainingTask& task) : task_(task) {
  check_batch_plan(task_.batches);
  check_schedule(task_.schedule);
  const Tensor& images = task_.images.images;
  expect(task_.images.count() == task_.batches.samples);
  rows_ = images.reshape({images.size(0), -1});
  order_ = Tensor::empty({task_.batches.batch_size}, DType::i32, images.device());
  loss_ = zeros({}, DType::f64, images.device());
  correct_ = zeros({}, DType::i64, images.device());
  if (images.device().is_cuda()) stream_.emplace(images.device());
}

StepSums ModuleEngine::run(std::int64_t epoch, std::int64_t first, std::int64_t count) {
  std::optional<StreamScope> scope;
  if (stream_) {  // after what others have done to the model
    Event ready(rows_.device());
    ready.record(current_stream(rows_.device()));
    ready.hold_back(*stream_);
    scope.emplace(*stream_);
  }
  const MatmulPrecisionScope precision(task_.precision);
  task_.model.train();
  clear(loss_);
  clear(correct_);
  StepSums sums;
  for (std::int64_t step = first; step < first + count; ++step) {
    prepare(epoch, step);
    const std::int64_t rows = task_.batches.rows(step);
    if (stream_ && rows == task_.batches.batch_size)
      compute_captured();
    else
      compute(rows);
    sums.samples += task_.batches.rows(step);
  }
  sums.loss = loss_.item<double>();
  sums.correct = correct_.item<std::int64_t>();
  return sums;
}

void ModuleEngine::prepare(std::int64_t epoch, std::int64_t step) {
  const std::int64_t steps = task_.batches.steps();
  fill_order(task_.batches, epoch, step * task_.batches.batch_size,
             order_.slice(0, 0, task_.batches.rows(step)));
  Optimizer& optimizer = task_.optimizer;
  optimizer.set_learning_rate(learning_rate_at(task_.schedule, task_.learning_rate, epoch, step, steps));
  if (optimizer.options().state_count() > 0)
    optimizer.set_momentum(momentum_at(task_.schedule, optimizer.momentum(), epoch, step, steps));
  optimizer.prepare_step();
}

void ModuleEngine::compute_captured() {
  constexpr int eager_steps = 2;  // they bring memory and libraries into their steady state
  if (eager_steps_ < eager_steps) {
    ++eager_steps_;
    return compute(task_.batches.batch_size);
  }
  if constexpr (has_cuda) {
    if (!graph_) {
      graph_ = std::make_shared<Graph>();
      graph_->capture(*stream_, [this] { compute(task_.batches.batch_size); });
    }
    graph_->replay(*stream_);
  }
}

void ModuleEngine::compute(std::int64_t rows) {
  const Tensor samples = order_.slice(0, 0, rows);
  const Tensor images = multiply(cast(gather_rows(rows_, samples), DType::f32), task_.pixel_scale);
  const Tensor labels = gather_rows(task_.images.labels, samples);
  const Tensor outputs = task_.model.forward(images);
  const Tensor loss = compute_loss(task_.loss, outputs, labels, task_.label_smoothing);
  backward(loss);
  task_.optimizer.apply();
  task_.optimizer.zero_grad();

  const NoGrad no_grad;
  const Tensor right = equal(argmax(outputs.detach(), 1), cast(labels, DType::i64));
  copy_into(correct_, add(correct_, sum(right)));
  copy_into(loss_, add(loss_, multiply(cast(loss.detach(), DType::f64), static_cast<double>(rows))));
}

std::string ModuleEngine::description() const {
  const Device device = rows_.device();
  if (device.is_cuda()) return "operations captured as a graph on " + device.to_string();
  return fmt::format("operations one by one on the CPU, {} thread{}", thread_count(),
                     thread_count() == 1 ? "" : "s");
}

}  // namespace tandem
