#include "tandem/train/evaluator.h"

#include <algorithm>
#include <utility>

#include "tandem/ops/cast.h"
#include "tandem/ops/reduce.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/metrics.h"

namespace tandem {

Device device_of(const Module& model) {
  return model.parameters().front().tensor.device();
}

std::int64_t evaluation_batch_size(const ImageInput& input) {
  constexpr std::int64_t max_batch = 2048, max_pixels = 128 * 224 * 224;
  if (input.flat) return max_batch;
  return std::clamp<std::int64_t>(max_pixels / (input.height * input.width), 1, max_batch);
}

DeviceEvaluation evaluate_on_device(Module& model, const ImageSet& set, LossKind loss,
                                    const ImageInput& input, const LossFunction& loss_function) {
  const NoGrad no_grad;
  const Tensor outputs = compute_outputs(model, set.images, input);
  const Tensor labels = set.labels.to(outputs.device());
  return {.outputs = outputs,
          .predictions = argmax(outputs, 1),
          .loss = loss_function ? loss_function(outputs, cast(labels, DType::i64))
                                : compute_loss(loss, outputs, labels)};
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
                     const LossFunction& loss_function, bool capture_graphs)
    : model_(model),
      set_(set),
      loss_(loss),
      input_(input),
      loss_function_(loss_function),
      capture_graphs_(capture_graphs) {
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

Evaluation Evaluator::run() {
  // With more batches launch overhead is negligible, and a graph of all of them would be large.
  constexpr std::int64_t max_captured_batches = 16;
  if (set_.count() == 0) return evaluate(model_, set_, loss_, input_);
  if (!capture_graphs_ || set_.count() > max_captured_batches * evaluation_batch_size(input_))
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
