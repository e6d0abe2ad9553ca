#include "tandem/train/evaluator.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "tandem/core/parallel.h"
#include "tandem/core/shard_tree.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/reduce.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/metrics.h"

namespace tandem {

Device device_of(const Module& model) {
  return model.parameters().front().tensor.device();
}

std::int64_t evaluation_batch_size(const ImageInput& input, Device device) {
  constexpr std::int64_t max_batch = 2048, photo_pixels = 224 * 224, max_photos = 128;
  if (input.flat) return max_batch;
  const std::int64_t photos =
      device.is_cuda() ? max_photos : std::clamp<std::int64_t>(2 * thread_count(), 4, max_photos);
  return std::clamp<std::int64_t>(photos * photo_pixels / (input.height * input.width), 1, max_batch);
}

std::int64_t next_evaluation_batch(std::int64_t left, const ImageInput& input, Device device) {
  const auto size = static_cast<std::uint64_t>(std::min(left, evaluation_batch_size(input, device)));
  return static_cast<std::int64_t>(device.is_cuda() ? size : std::bit_floor(size));
}

namespace {

DeviceEvaluation compare_with_labels(const Tensor& outputs, const ImageSet& set, LossKind loss,
                                     const LossFunction& loss_function) {
  const Tensor labels = set.labels.to(outputs.device());
  return {.outputs = outputs,
          .predictions = argmax(outputs, 1),
          .loss = loss_function ? loss_function(outputs, cast(labels, DType::i64))
                                : compute_loss(loss, outputs, labels)};
}

}  // namespace

DeviceEvaluation evaluate_on_device(Module& model, const ImageSet& set, LossKind loss,
                                    const ImageInput& input, const LossFunction& loss_function) {
  const NoGrad no_grad;
  return compare_with_labels(compute_outputs(model, set.images, input), set, loss, loss_function);
}

Evaluation to_host(const DeviceEvaluation& result, const std::vector<std::int32_t>& labels) {
  Evaluation evaluation{.loss = cast(result.loss, DType::f32).item<float>(),
                        .classes = result.outputs.size(1),
                        .outputs = result.outputs.to_vector<float>()};
  for (const std::int64_t prediction : result.predictions.to_vector<std::int64_t>())
    evaluation.predictions.push_back(static_cast<std::int32_t>(prediction));
  evaluation.accuracy = accuracy(labels, evaluation.predictions);
  return evaluation;
}

Evaluator::Evaluator(Module& model, const ImageSet& set, LossKind loss, const ImageInput& input,
                     const LossFunction& loss_function, bool capture_graphs, Group* group)
    : model_(model),
      set_(set),
      loss_(loss),
      input_(input),
      loss_function_(loss_function),
      capture_graphs_(capture_graphs),
      group_(group && group->place().size > 1 ? group : nullptr) {
  if (set.count() == 0) return;
  labels_ = set.labels.to_vector<std::int32_t>();
  set_ = set.to(device_of(model));
}

Evaluator::GraphKey Evaluator::graph_key() const {
  GraphKey key{.addresses = {}, .precision = matmul_precision()};
  for (const NamedTensors& part : {model_.parameters(), model_.buffers()})
    for (const NamedTensor& each : part) key.addresses.push_back(each.tensor.bytes());
  return key;
}

// Images are dealt out in parts of fixed sizes, because the outputs of a GPU can depend on the images beside
// an image.
Tensor Evaluator::outputs_of_all_ranks() {
  const std::int64_t size =
      device_of(model_).is_cuda() ? evaluation_batch_size(input_, device_of(model_)) : 16;
  const std::int64_t parts = (set_.count() + size - 1) / size;
  const auto images_of = [&](int rank) {
    const IndexRange own = part_of(parts, group_->place().size, rank);
    return IndexRange{own.begin * size, std::min(own.end * size, set_.count())};
  };
  std::int64_t most = 0;
  for (const Place& place : group_->places()) most = std::max(most, images_of(place.rank).count());
  // A rank without images computes one, to know the number of outputs.
  IndexRange mine = images_of(group_->place().rank);
  if (mine.count() <= 0) mine = {0, 1};
  const Tensor outputs =
      cast(compute_outputs(model_, set_.images.slice(0, mine.begin, mine.end), input_), DType::f32);
  const std::int64_t classes = outputs.size(1);
  std::vector<float> own = outputs.to_vector<float>(), all;
  own.resize(static_cast<std::size_t>(most * classes));
  all.resize(own.size() * group_->places().size());
  group_->all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
  std::vector<float> joined;
  for (const Place& place : group_->places()) {
    const auto from = all.begin() + place.rank * most * classes;
    joined.insert(joined.end(), from,
                  from + std::max<std::int64_t>(images_of(place.rank).count(), 0) * classes);
  }
  return Tensor::from(joined, {set_.count(), classes}, device_of(model_));
}

Evaluation Evaluator::run() {
  // With more batches launch overhead is negligible, and a graph of all of them would be large.
  constexpr std::int64_t max_captured_batches = 16;
  if (set_.count() == 0) return evaluate(model_, set_, loss_, input_);
  if (group_) {
    const NoGrad no_grad;
    return to_host(compare_with_labels(outputs_of_all_ranks(), set_, loss_, loss_function_), labels_);
  }
  if (!capture_graphs_ ||
      set_.count() > max_captured_batches * evaluation_batch_size(input_, device_of(model_)))
    return to_host(evaluate_on_device(model_, set_, loss_, input_, loss_function_), labels_);
  if (GraphKey key = graph_key(); key != captured_key_) {
    result_ = {};  // its memory belongs to the old runner's pool
    runner_.emplace(device_of(model_));
    set_ = set_.to(device_of(model_));
    captured_key_ = std::move(key);
  }
  runner_->run([this] {
    model_.invalidate_caches();  // the graph folds norms itself, on every replay
    result_ = evaluate_on_device(model_, set_, loss_, input_, loss_function_);
    model_.invalidate_caches();
  });
  return to_host(result_, labels_);
}

}  // namespace tandem
