// Sums are kept on the device until the end of run(), so that no step waits for the host.
#include "tandem/train/engines/module_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tandem/augment/mix_kernel.h"
#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"
#include "tandem/nn/batch_norm.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/backward.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/compare.h"
#include "tandem/ops/concat.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/gather.h"
#include "tandem/ops/gather_kernel.h"
#include "tandem/ops/reduce.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

Tensor order_free(const Tensor& value) {
  return subtract(add(value, order_free_rounder), order_free_rounder);
}

// Enough images per forward pass to keep a device busy.
constexpr std::int64_t feature_batch = 64;

}  // namespace

ModuleEngine::ModuleEngine(const TrainingTask& task) : task_(task) {
  check_batch_plan(task_.batches());
  check_schedule(task_.schedule);
  const Device device = task_.source.device();
  const std::int64_t batch = task_.batches().batch_size;
  auto* const network = dynamic_cast<BackboneModel*>(&task_.model);
  if (network && network->is_backbone_frozen()) {
    frozen_ = network;
    if (!is_sharded()) stride_ = std::clamp<std::int64_t>(feature_batch / batch, 1, task_.batches().steps());
  }
  const std::int64_t rows = stride_ * own_rows(batch);
  images_ = Tensor::empty({rows, task_.source.image_size()}, DType::u8, device);
  labels_ = Tensor::empty({rows}, DType::i32, device);
  if (!task_.mix.empty()) {
    check_mix_recipe(task_.mix);
    mixed_labels_ = Tensor::empty({rows}, DType::i32, device);
    label_weight_ = Tensor::empty({}, DType::f32, device);
  }
  if (frozen_) {
    features_ = Tensor::empty({rows, frozen_->feature_count()}, DType::f32, device);
    const std::int64_t own = own_rows(batch);
    step_.features = Tensor::empty({own, frozen_->feature_count()}, DType::f32, device);
    step_.labels = Tensor::empty({own}, DType::i32, device);
    step_.mixed_labels = Tensor::empty({own}, DType::i32, device);
  }
  loss_ = zeros({}, DType::f64, device);
  correct_ = zeros({}, DType::i64, device);
  finite_steps_ = zeros({}, DType::i64, device);
  if (task_.group) join_ranks(*task_.group);
  if (task_.accumulate > 1)
    accumulation_.emplace(task_.model, task_.shards(), task_.batches().part.own, task_.accumulate, gather_);
  if (task_.clip_norm > 0) clip_.emplace(task_.optimizer.parameters(), task_.clip_norm);
  if (!device.is_cuda()) return;
  stream_.emplace(device);
  if (task_.optimizer.fused()) return;
  for (const auto& [name, parameter] : task_.optimizer.parameters())
    kept_gradients_.push_back({Tensor::empty(parameter.shape(), parameter.dtype(), device), false});
}

void ModuleEngine::join_ranks(Group& group) {
  const Device device = task_.source.device();
  const std::int64_t shards = task_.shards();
  std::unique_ptr<BucketSums> bucket_sums;
  if (device.is_cuda() && !task_.exchange_through_cpu) {
    nccl_.emplace(group, device);
    gather_ = gather_shards_of(*nccl_, shards);
    bucket_sums = nccl_bucket_sums(*nccl_, shards);
  } else {
    gather_ = gather_shards_of(group, shards, not_finite_);
    bucket_sums = cpu_bucket_sums(group, shards, device);
  }
  exchange_.emplace(std::move(bucket_sums), task_.optimizer.parameters(), shards, task_.batches().part.own);
}

// An exchange through the CPU cannot be captured.
bool ModuleEngine::captures_graphs() const {
  return stream_ && task_.capture_graphs && (!exchange_ || nccl_);
}

void ModuleEngine::add_steps(std::int64_t epoch, std::int64_t first, std::int64_t count, StepSums& sums) {
  std::optional<StreamScope> scope;
  if (stream_) {  // wait for pending work on the model
    Event ready(task_.source.device());
    ready.record(current_stream(task_.source.device()));
    ready.block_stream(*stream_);
    scope.emplace(*stream_);
  }
  if (nccl_) nccl_->begin_work();
  const MatmulPrecisionScope precision(task_.precision);
  task_.model.train();
  StepSums added;
  // Losses of shards are order-free, others continue the sum.
  copy_into(loss_, full({}, is_sharded() ? 0 : sums.loss, DType::f64, loss_.device()));
  clear(correct_);
  const BatchPlan& batches = task_.batches();
  for (const std::int64_t end = first + count; first < end;) {
    const std::int64_t next = std::min((first / stride_ + 1) * stride_, end);
    load(epoch, first, (next - 1 - first) * batches.local_batch_size() + batches.local_rows(next - 1));
    const std::int64_t rows = (next - 1 - first) * batches.batch_size + batches.rows(next - 1);
    if (frozen_) run_captured(feature_runners_, rows, &ModuleEngine::compute_features);
    for (std::int64_t at = 0; first < next; ++first, at += batches.batch_size) {
      prepare(epoch, first, at);
      run_captured(step_runners_, batches.rows(first), &ModuleEngine::compute_step);
      if (!task_.optimizer.fused()) step_own_optimizer();
      look_ahead(epoch, first);
    }
    added.samples += own_rows(rows);
  }
  added.loss = loss_.item<double>();
  added.correct = correct_.item<std::int64_t>();
  if (nccl_) nccl_->end_work();
  if (task_.group) added = sum_over_ranks(*task_.group, added);
  if (!is_sharded()) sums.loss = 0;
  sums += added;
}

std::int64_t ModuleEngine::own_rows(std::int64_t rows) const {
  const BatchPart& part = task_.batches().part;
  return rows_of_shards(rows, part.shards, part.own).count();
}

ShardPart ModuleEngine::begin_pass(std::int64_t pass, std::int64_t rows) {
  if (accumulation_) return accumulation_->begin_pass(pass, rows, task_.batch_norm);
  const BatchPart& part = task_.batches().part;
  return {.shards = part.shards, .own = part.own, .rows = rows, .norm = task_.batch_norm, .gather = gather_};
}

IndexRange ModuleEngine::rows_of(const ShardPart& part) const {
  const std::int64_t first = rows_of_shards(part.rows, part.shards, task_.batches().part.own).begin;
  const IndexRange rows = detail::local_rows(part);
  return {rows.begin - first, rows.end - first};
}

void ModuleEngine::load(std::int64_t epoch, std::int64_t first, std::int64_t rows) {
  const std::int64_t batch = task_.batches().local_batch_size();
  for (std::int64_t done = 0; done < rows;) {
    const SourceBlock block = task_.source.next_block(epoch, first * batch + done, rows - done);
    if (task_.mix.empty())
      copy_block(block, done);
    else
      copy_mixed_block(block, done, epoch, first + done / batch);
    done += block.count;
  }
}

void ModuleEngine::copy_block(const SourceBlock& block, std::int64_t to) {
  const StreamView stream = current_stream(task_.source.device());
  const std::int64_t size = task_.source.image_size();
  on_backend(stream.device, "train", [&]<Backend B>() {
    detail::gather_rows_kernel<B>({.dtype = DType::i32,
                                   .data = reinterpret_cast<const std::byte*>(block.samples),
                                   .count = block.count,
                                   .table_rows = block.image_count},
                                  images_.bytes() + to * size,
                                  reinterpret_cast<const std::byte*>(block.images), size, stream);
    copy_bytes<B>(labels_.data<std::int32_t>() + to, block.labels,
                  static_cast<std::size_t>(block.count) * sizeof(std::int32_t), stream);
  });
}

MixArguments ModuleEngine::mix_of(std::int64_t epoch, std::int64_t step) const {
  return sample_mix(task_.mix, static_cast<int>(task_.input.height), static_cast<int>(task_.input.width),
                    task_.batches().seed, epoch, step);
}

// Per batch: each image is mixed with the previous one, the first with the last.
void ModuleEngine::copy_mixed_block(const SourceBlock& block, std::int64_t to, std::int64_t epoch,
                                    std::int64_t first) {
  const StreamView stream = current_stream(task_.source.device());
  constexpr std::size_t label_bytes = sizeof(std::int32_t);
  const BatchPlan& batches = task_.batches();
  const std::int64_t extra = batches.part.extra_rows();
  for (std::int64_t at = extra; at < block.count; ++first) {
    const std::int64_t rows = batches.own_rows(first).count();
    const std::int64_t previous = extra > 0 ? -1 : rows - 1;  // of the first row
    const detail::MixBatch batch{.arguments = mix_of(epoch, first),
                                 .images = block.images,
                                 .image_count = block.image_count,
                                 .samples = block.samples + at,
                                 .out = images_.data<std::uint8_t>() + to * task_.source.image_size(),
                                 .count = rows,
                                 .height = static_cast<std::int32_t>(task_.input.height),
                                 .width = static_cast<std::int32_t>(task_.input.width),
                                 .channels = static_cast<std::int32_t>(task_.input.channels),
                                 .previous_of_first = previous};
    const std::int32_t* const labels = block.labels + at;
    std::int32_t* const mixed_labels = mixed_labels_.data<std::int32_t>() + to;
    on_backend(stream.device, "train", [&]<Backend B>() {
      detail::mix_kernel<B>(batch, stream);
      copy_bytes<B>(labels_.data<std::int32_t>() + to, labels, static_cast<std::size_t>(rows) * label_bytes,
                    stream);
      copy_bytes<B>(mixed_labels + 1, labels, static_cast<std::size_t>(rows - 1) * label_bytes, stream);
      copy_bytes<B>(mixed_labels, labels + previous, label_bytes, stream);
    });
    to += rows;
    at += rows + extra;
  }
}

void ModuleEngine::prepare(std::int64_t epoch, std::int64_t step, std::int64_t begin) {
  const std::int64_t steps = task_.batches().steps(), rows = task_.batches().own_rows(step).count();
  const auto select = [&](const Tensor& to, const Tensor& from) {
    copy_into(to.slice(0, 0, rows), from.slice(0, begin, begin + rows));
  };
  const bool mixed = !task_.mix.empty();
  if (frozen_) select(step_.features, features_);
  if (frozen_) select(step_.labels, labels_);
  if (frozen_ && mixed) select(step_.mixed_labels, mixed_labels_);
  if (mixed)
    copy_into(label_weight_, full({}, mix_of(epoch, step).label_weight, DType::f32, label_weight_.device()));
  Optimizer& optimizer = task_.optimizer;
  optimizer.set_learning_rate(learning_rate_at(task_.schedule, task_.learning_rate, epoch, step, steps));
  FusedOptimizer* const fused = optimizer.fused();
  if (!fused) return;
  if (fused->options().state_count() > 0)
    fused->set_momentum(momentum_at(task_.schedule, fused->momentum(), epoch, step, steps));
  fused->prepare_step();
}

void ModuleEngine::run_captured(GraphRunners& runners, std::int64_t rows,
                                void (ModuleEngine::*work)(std::int64_t)) {
  if (!captures_graphs()) return (this->*work)(rows);
  runners.try_emplace(rows, task_.source.device()).first->second.run([&] {
    // Derived tensors (folded norms) computed in a capture live in the graph's memory: drop them on both
    // sides.
    task_.model.invalidate_caches();
    (this->*work)(rows);
    task_.model.invalidate_caches();
  });
}

Tensor ModuleEngine::network_images(IndexRange rows) const {
  const bool use_bf16 = task_.precision == MatmulPrecision::bf16;
  return network_input(images_.slice(0, rows.begin, rows.end), task_.input,
                       use_bf16 ? DType::bf16 : DType::f32);
}

void ModuleEngine::compute_features(std::int64_t rows) {
  const NoGrad no_grad;
  std::optional<GhostBatches> separate;
  if (!is_sharded()) separate.emplace(task_.batches().batch_size);
  for (std::int64_t pass = 0; pass < task_.accumulate; ++pass) {
    const ShardPart part = begin_pass(pass, rows);
    const ShardScope scope(part);
    const IndexRange own = rows_of(part);
    copy_into(features_.slice(0, own.begin, own.end), frozen_->head_input(network_images(own)));
  }
}

void ModuleEngine::compute_step(std::int64_t rows) {
  not_finite_.begin_step();
  total_weight_ = total_weight(rows);
  for (std::int64_t pass = 0; pass < task_.accumulate; ++pass) compute_pass(begin_pass(pass, rows));
  total_weight_ = Tensor();  // it may be in the memory of a graph
  if (exchange_) count_finite_step();
  update();
}

// The weights of the labels of all shards; with mixtures of labels the number of rows, as PyTorch has it for
// targets that are probabilities.
Tensor ModuleEngine::total_weight(std::int64_t rows) const {
  const Tensor& weights = task_.class_weights;
  if (!weights.defined()) return {};
  const NoGrad no_grad;
  if (!task_.mix.empty()) return full({}, static_cast<double>(rows), DType::f32, weights.device());
  const BatchPart& part = task_.batches().part;
  const ShardPart batch{.shards = part.shards, .own = part.own, .rows = rows, .gather = gather_};
  const Tensor& labels = frozen_ ? step_.labels : labels_;
  std::vector<Tensor> sums;
  for (const auto [begin, end] : detail::shard_ranges(batch, own_rows(rows), "train"))
    sums.push_back(begin < end ? sum(gather_rows(weights, labels.slice(0, begin, end))).reshape({1})
                               : zeros({1}, DType::f32, weights.device()));
  return sum(detail::gather_shards(batch, concat(sums, 0), "train"));
}

// On the device, as the loss is.
void ModuleEngine::count_finite_step() {
  const NoGrad no_grad;
  const Tensor zero = subtract(loss_, loss_);  // or NaN
  copy_into(finite_steps_, add(finite_steps_, sum(equal(zero, zero))));
}

std::int64_t ModuleEngine::first_not_finite() const {
  return not_finite_.first(finite_steps_.item<std::int64_t>());
}

void ModuleEngine::compute_pass(const ShardPart& part) {
  const ShardScope scope(part);
  const IndexRange own = rows_of(part);
  const auto of_step = [&](const Tensor& selected, const Tensor& loaded) {
    return (frozen_ ? selected : loaded).slice(0, own.begin, own.end);
  };
  const StepRows step{
      .outputs =
          frozen_ ? frozen_->head(of_step(step_.features, {})) : task_.model.forward(network_images(own)),
      .labels = of_step(step_.labels, labels_),
      .mixed_labels = task_.mix.empty() ? Tensor() : of_step(step_.mixed_labels, mixed_labels_)};
  const Tensor loss = loss_of(step);
  backpropagate(loss);

  const NoGrad no_grad;
  const Tensor is_correct = equal(argmax(step.outputs.detach(), 1), cast(step.labels, DType::i64));
  copy_into(correct_, add(correct_, sum(is_correct)));
  copy_into(loss_, add(loss_, loss_sum(step, loss, part)));
}

ModuleEngine::StepRows ModuleEngine::StepRows::slice(std::int64_t begin, std::int64_t end) const {
  return {.outputs = outputs.detach().slice(0, begin, end),
          .labels = labels.slice(0, begin, end),
          .mixed_labels = mixed_labels.defined() ? mixed_labels.slice(0, begin, end) : Tensor()};
}

Tensor ModuleEngine::loss_of(const StepRows& step) const {
  Tensor loss = task_.compute_loss(step.outputs, step.labels, total_weight_);
  if (!step.mixed_labels.defined()) return loss;
  const Tensor other = task_.compute_loss(step.outputs, step.mixed_labels, total_weight_);
  return add(other, multiply(subtract(loss, other), label_weight_));
}

// The sum of the losses of the rows. That of a shard must not depend on the rows beside it, so it is computed
// again from the outputs.
Tensor ModuleEngine::loss_sum(const StepRows& step, const Tensor& loss, const ShardPart& part) const {
  const auto sum_of = [](const Tensor& mean, std::int64_t count) {
    return multiply(cast(mean.detach(), DType::f64), static_cast<double>(count));
  };
  if (!is_sharded()) return sum_of(loss, part.rows);
  const detail::WithoutShards plain;
  Tensor total = zeros({}, DType::f64, loss_.device());
  for (const auto [begin, end] : detail::shard_ranges(part, step.labels.size(0), "train")) {
    // A weighted loss is divided by the weight of the whole batch, any other by the rows that are given.
    const std::int64_t rows = total_weight_.defined() ? part.rows : end - begin;
    if (begin < end) total = add(total, order_free(sum_of(loss_of(step.slice(begin, end)), rows)));
  }
  return total;
}

void ModuleEngine::backpropagate(const Tensor& loss) {
  if (!exchange_ && !accumulation_) return backward(loss);
  backward(loss, [&](const Node& leaf) {
    if (accumulation_ && !accumulation_->add(leaf)) return;
    if (exchange_) exchange_->add(leaf);
  });
}

// Waits for the gradients of all ranks and applies them.
void ModuleEngine::update() {
  if (exchange_) exchange_->finish();
  if (clip_) clip_->apply();
  if (FusedOptimizer* const fused = task_.optimizer.fused()) {
    fused->apply();
    fused->zero_grad();
    update_average();
  } else {
    keep_gradients();
  }
}

void ModuleEngine::update_average() {
  const NoGrad no_grad;
  if (task_.average) task_.average->update();
}

// Outside of graphs: what it does depends on the step.
void ModuleEngine::look_ahead(std::int64_t epoch, std::int64_t step) {
  if (!task_.lookahead) return;
  const NoGrad no_grad;
  const std::int64_t steps = task_.batches().steps();
  task_.lookahead->after_step(epoch * steps + step + 1, task_.schedule.epochs * steps);
}

// Copies the gradients out of the memory of a captured graph, which only the graph may use, into buffers that
// every replay fills again.
void ModuleEngine::keep_gradients() {
  for (std::size_t i = 0; i < kept_gradients_.size(); ++i) {
    const Tensor& parameter = task_.optimizer.parameters()[i].tensor;
    const Tensor gradient = parameter.grad();
    kept_gradients_[i].used = gradient.defined();
    if (gradient.defined()) copy_into(kept_gradients_[i].buffer, gradient);
    parameter.set_grad(Tensor());
  }
}

void ModuleEngine::step_own_optimizer() {
  for (std::size_t i = 0; i < kept_gradients_.size(); ++i)
    if (kept_gradients_[i].used) task_.optimizer.parameters()[i].tensor.set_grad(kept_gradients_[i].buffer);
  task_.optimizer.step();
  task_.optimizer.zero_grad();
  update_average();
}

std::string ModuleEngine::description() const {
  const Device device = task_.source.device();
  if (device.is_cuda())
    return fmt::format("operations {} on {}{}", captures_graphs() ? "captured as graphs" : "one by one",
                       device.to_string(),
                       nccl_       ? ", gradients by NCCL"
                       : exchange_ ? ", gradients through the CPU"
                                   : "");
  return fmt::format("operations one by one on the CPU, {} thread{}", thread_count(),
                     thread_count() == 1 ? "" : "s");
}

}  // namespace tandem
