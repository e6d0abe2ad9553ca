// Sums stay on the device until the end of run(), so that no step waits for the host.
#include "tandem/train/module_engine.h"

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/device/driver.h"
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
  check_batch_plan(task_.batches());
  check_schedule(task_.schedule);
  const Device device = task_.source.device();
  const std::int64_t batch = task_.batches().batch_size;
  images_ = Tensor::empty({batch, task_.source.image_size()}, DType::u8, device);
  labels_ = Tensor::empty({batch}, DType::i32, device);
  loss_ = zeros({}, DType::f64, device);
  correct_ = zeros({}, DType::i64, device);
  if (device.is_cuda()) stream_.emplace(device);
}

StepSums ModuleEngine::run(std::int64_t epoch, std::int64_t first, std::int64_t count) {
  std::optional<StreamScope> scope;
  if (stream_) {  // after what others have done to the model
    Event ready(task_.source.device());
    ready.record(current_stream(task_.source.device()));
    ready.hold_back(*stream_);
    scope.emplace(*stream_);
  }
  const MatmulPrecisionScope precision(task_.precision);
  task_.model.train();
  clear(loss_);
  clear(correct_);
  StepSums sums;
  const std::int64_t batch = task_.batches().batch_size;
  for (const std::int64_t end = first + count; first < end;) {
    const SourceBlock block = task_.source.take(epoch, first * batch, (end - first) * batch);
    for (std::int64_t position = 0; position < block.count; position += batch, ++first) {
      prepare(epoch, first, block, position);
      const std::int64_t rows = task_.batches().rows(first);
      if (stream_)
        compute_repeatedly(rows);
      else
        compute(rows);
      sums.samples += rows;
    }
  }
  sums.loss = loss_.item<double>();
  sums.correct = correct_.item<std::int64_t>();
  return sums;
}

void ModuleEngine::prepare(std::int64_t epoch, std::int64_t step, const SourceBlock& block,
                           std::int64_t position) {
  const std::int64_t steps = task_.batches().steps(), rows = task_.batches().rows(step);
  const StreamView stream = current_stream(task_.source.device());
  on_backend(stream.device, "train", [&]<Backend B>() {
    gather_rows_kernel<B>(DType::i32, images_.bytes(), reinterpret_cast<const std::byte*>(block.images),
                          reinterpret_cast<const std::byte*>(block.samples + position), block.image_count,
                          rows, task_.source.image_size(), stream);
    copy_bytes<B>(labels_.bytes(), block.labels + position,
                  static_cast<std::size_t>(rows) * sizeof(std::int32_t), stream);
  });
  Optimizer& optimizer = task_.optimizer;
  optimizer.set_learning_rate(learning_rate_at(task_.schedule, task_.learning_rate, epoch, step, steps));
  if (optimizer.options().state_count() > 0)
    optimizer.set_momentum(momentum_at(task_.schedule, optimizer.momentum(), epoch, step, steps));
  optimizer.prepare_step();
}

void ModuleEngine::compute_repeatedly(std::int64_t rows) {
  steps_.try_emplace(rows, task_.source.device()).first->second.run([this, rows] {
    // A graph derives what it needs itself, in memory that nobody takes for values of their own.
    task_.model.drop_derived();
    compute(rows);
    task_.model.drop_derived();
  });
}

void ModuleEngine::compute(std::int64_t rows) {
  // The CPU has no use for bf16: it takes as long there as f32.
  const bool halves = task_.precision == MatmulPrecision::bf16 && stream_;
  const Tensor images =
      network_input(images_.slice(0, 0, rows), task_.input, halves ? DType::bf16 : DType::f32);
  const Tensor labels = labels_.slice(0, 0, rows);
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
  const Device device = task_.source.device();
  if (device.is_cuda()) return "operations captured as graphs on " + device.to_string();
  return fmt::format("operations one by one on the CPU, {} thread{}", thread_count(),
                     thread_count() == 1 ? "" : "s");
}

}  // namespace tandem
