// Sums stay on the device until the end of run(), so that no step waits for the host.
#include "tandem/train/module_engine.h"

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/device/driver.h"
#include "tandem/nn/batch_norm.h"
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

namespace {

// Images that keep a device busy.
constexpr std::int64_t images_at_once = 64;

}  // namespace

ModuleEngine::ModuleEngine(const TrainingTask& task) : task_(task) {
  check_batch_plan(task_.batches());
  check_schedule(task_.schedule);
  const Device device = task_.source.device();
  const std::int64_t batch = task_.batches().batch_size;
  auto* const network = dynamic_cast<BackboneModel*>(&task_.model);
  if (network && network->is_backbone_frozen()) {
    frozen_ = network;
    stride_ = std::clamp<std::int64_t>(images_at_once / batch, 1, task_.batches().steps());
  }
  images_ = Tensor::empty({stride_ * batch, task_.source.image_size()}, DType::u8, device);
  labels_ = Tensor::empty({stride_ * batch}, DType::i32, device);
  if (frozen_) {
    features_ = Tensor::empty({stride_ * batch, frozen_->feature_count()}, DType::f32, device);
    step_features_ = Tensor::empty({batch, frozen_->feature_count()}, DType::f32, device);
    step_labels_ = Tensor::empty({batch}, DType::i32, device);
  }
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
  const BatchPlan& batches = task_.batches();
  for (const std::int64_t end = first + count; first < end;) {
    const std::int64_t next = std::min((first / stride_ + 1) * stride_, end);
    const std::int64_t rows = (next - 1 - first) * batches.batch_size + batches.rows(next - 1);
    load(epoch, first, rows);
    if (frozen_) repeat(feature_works_, rows, &ModuleEngine::compute_features);
    for (std::int64_t at = 0; first < next; ++first, at += batches.batch_size) {
      const std::int64_t own = batches.rows(first);
      set_rates(epoch, first);
      if (frozen_) {
        copy_into(step_features_.slice(0, 0, own), features_.slice(0, at, at + own));
        copy_into(step_labels_.slice(0, 0, own), labels_.slice(0, at, at + own));
      }
      repeat(step_works_, own, &ModuleEngine::compute_step);
    }
    sums.samples += rows;
  }
  sums.loss = loss_.item<double>();
  sums.correct = correct_.item<std::int64_t>();
  return sums;
}

void ModuleEngine::load(std::int64_t epoch, std::int64_t first, std::int64_t rows) {
  const StreamView stream = current_stream(task_.source.device());
  const std::int64_t size = task_.source.image_size(), position = first * task_.batches().batch_size;
  for (std::int64_t done = 0; done < rows;) {
    const SourceBlock block = task_.source.take(epoch, position + done, rows - done);
    on_backend(stream.device, "train", [&]<Backend B>() {
      gather_rows_kernel<B>(
          DType::i32, images_.bytes() + done * size, reinterpret_cast<const std::byte*>(block.images),
          reinterpret_cast<const std::byte*>(block.samples), block.image_count, block.count, size, stream);
      copy_bytes<B>(labels_.data<std::int32_t>() + done, block.labels,
                    static_cast<std::size_t>(block.count) * sizeof(std::int32_t), stream);
    });
    done += block.count;
  }
}

void ModuleEngine::set_rates(std::int64_t epoch, std::int64_t step) {
  const std::int64_t steps = task_.batches().steps();
  Optimizer& optimizer = task_.optimizer;
  optimizer.set_learning_rate(learning_rate_at(task_.schedule, task_.learning_rate, epoch, step, steps));
  if (optimizer.options().state_count() > 0)
    optimizer.set_momentum(momentum_at(task_.schedule, optimizer.momentum(), epoch, step, steps));
  optimizer.prepare_step();
}

void ModuleEngine::repeat(Works& works, std::int64_t rows, void (ModuleEngine::*work)(std::int64_t)) {
  if (!stream_) return (this->*work)(rows);
  works.try_emplace(rows, task_.source.device()).first->second.run([&] {
    // A graph derives what it needs itself, in memory that nobody takes for values of their own.
    task_.model.drop_derived();
    (this->*work)(rows);
    task_.model.drop_derived();
  });
}

Tensor ModuleEngine::network_images(std::int64_t rows) const {
  // The CPU has no use for bf16: it takes as long there as f32.
  const bool halves = task_.precision == MatmulPrecision::bf16 && stream_;
  return network_input(images_.slice(0, 0, rows), task_.input, halves ? DType::bf16 : DType::f32);
}

void ModuleEngine::compute_features(std::int64_t rows) {
  const NoGrad no_grad;
  const SeparateBatches separate(task_.batches().batch_size);
  copy_into(features_.slice(0, 0, rows), frozen_->features(network_images(rows)));
}

void ModuleEngine::compute_step(std::int64_t rows) {
  const Tensor labels = (frozen_ ? step_labels_ : labels_).slice(0, 0, rows);
  const Tensor outputs =
      frozen_ ? frozen_->head(step_features_.slice(0, 0, rows)) : task_.model.forward(network_images(rows));
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
