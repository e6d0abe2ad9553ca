#include "tandem/train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/concat.h"
#include "tandem/ops/reduce.h"
#include "tandem/ops/softmax.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/metrics.h"

namespace tandem {
namespace {

// Enough to keep any device busy, few enough to fit anywhere.
std::int64_t batch_for(const ImageInput& input) {
  constexpr std::int64_t most = 2048, most_pixels = 128 * 224 * 224;
  if (input.flat) return most;
  return std::clamp<std::int64_t>(most_pixels / (input.height * input.width), 1, most);
}

class EvaluationMode {
 public:
  explicit EvaluationMode(Module& model) : model_(model), training_(model.is_training()) { model.eval(); }
  ~EvaluationMode() { model_.train(training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Module& model_;
  bool training_;
};

Device device_of(const Module& model) {
  return model.parameters().front().tensor.device();
}

// Nothing in it waits for the device, so that it can be captured.
JudgedImages judge(Module& model, const ImageSet& set, LossKind loss, const ImageInput& input) {
  const NoGrad no_grad;
  const Tensor outputs = outputs_of(model, set.images, input);
  return {.outputs = outputs,
          .predictions = argmax(outputs, 1),
          .loss = compute_loss(loss, outputs, set.labels.to(outputs.device()))};
}

Evaluation fetch(const JudgedImages& judged, const std::vector<std::int32_t>& labels) {
  Evaluation evaluation{.loss = judged.loss.item<float>(),
                        .classes = judged.outputs.size(1),
                        .outputs = judged.outputs.to_vector<float>()};
  for (const std::int64_t prediction : judged.predictions.to_vector<std::int64_t>())
    evaluation.predictions.push_back(static_cast<std::int32_t>(prediction));
  evaluation.accuracy = accuracy(labels, evaluation.predictions);
  return evaluation;
}

Evaluation of_nothing() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {.loss = nan, .accuracy = nan};
}

}  // namespace

Tensor outputs_of(Module& model, const Tensor& images, const ImageInput& input) {
  const NoGrad no_grad;
  const EvaluationMode mode(model);
  const Device device = device_of(model);
  const std::int64_t count = images.size(0);
  expect(count > 0);
  const std::int64_t batch = batch_for(input);
  std::vector<Tensor> parts;
  for (std::int64_t begin = 0; begin < count; begin += batch) {
    const Tensor part = images.slice(0, begin, std::min(begin + batch, count)).to(device);
    parts.push_back(model.forward(network_input(part, input)));
  }
  return parts.size() == 1 ? parts.front() : concat(parts, 0);
}

Evaluation evaluate(Module& model, const ImageSet& set, LossKind loss, const ImageInput& input) {
  if (set.count() == 0) return of_nothing();
  return fetch(judge(model, set, loss, input), set.labels.to_vector<std::int32_t>());
}

Evaluator::Evaluator(Module& model, const ImageSet& set, LossKind loss, const ImageInput& input)
    : model_(model), set_(set), loss_(loss), input_(input) {
  if (set.count() == 0) return;
  labels_ = set.labels.to_vector<std::int32_t>();
  set_ = set.to(device_of(model));
}

Evaluator::Premises Evaluator::premises() const {
  Premises found{.places = {}, .precision = matmul_precision()};
  for (const NamedTensors& part : {model_.parameters(), model_.buffers()})
    for (const NamedTensor& each : part) found.places.push_back(each.tensor.bytes());
  return found;
}

Evaluation Evaluator::run() {
  if (set_.count() == 0) return of_nothing();
  // Beyond, single launches are lost in what they compute, and a graph of all is large.
  constexpr std::int64_t most_batches = 16;
  if (set_.count() > most_batches * batch_for(input_))
    return fetch(judge(model_, set_, loss_, input_), labels_);
  if (Premises now = premises(); now != premises_) {
    judged_ = {};  // before the memory it is from
    work_.emplace(device_of(model_));
    set_ = set_.to(device_of(model_));
    premises_ = std::move(now);
  }
  work_->run([this] {
    model_.drop_derived();  // the graph folds norms itself, every time
    judged_ = judge(model_, set_, loss_, input_);
    model_.drop_derived();
  });
  return fetch(judged_, labels_);
}

std::vector<float> probabilities(const std::vector<float>& outputs, std::int64_t classes, LossKind loss) {
  if (outputs.empty()) return {};
  const Tensor rows = Tensor::from(outputs, {static_cast<std::int64_t>(outputs.size()) / classes, classes});
  return (loss == LossKind::cross_entropy ? softmax(rows) : divide(rows, sum(rows, {1}, {.keep_axes = true})))
      .to_vector<float>();
}

}  // namespace tandem
