#include "tandem/train/evaluate.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/nn/quantized_resnet.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/concat.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/reduce.h"
#include "tandem/ops/softmax.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/evaluation_mode.h"
#include "tandem/train/evaluator.h"

namespace tandem {
namespace {

Evaluation empty_evaluation() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {.loss = nan, .accuracy = nan};
}

thread_local const EvaluationObserver::OnBatch* observer = nullptr;

}  // namespace

EvaluationObserver::EvaluationObserver(OnBatch on_batch)
    : on_batch_(std::move(on_batch)), previous_(observer) {
  observer = &on_batch_;
}

EvaluationObserver::~EvaluationObserver() {
  observer = previous_;
}

namespace {

// Tensors of all images, which `compute` makes of the network's input, in batches.
template <class Compute>
Tensor in_batches(Module& model, const Tensor& images, const ImageInput& input, Compute compute) {
  const NoGrad no_grad;
  const EvaluationMode mode(model);
  const Device device = device_of(model);
  const DType dtype = image_dtype(model, matmul_precision());
  const std::int64_t count = images.size(0);
  expect(count > 0);
  std::vector<Tensor> parts;
  for (std::int64_t begin = 0, batch = 0; begin < count; begin += batch) {
    batch = next_evaluation_batch(count - begin, input, device);
    const Tensor part = images.slice(0, begin, begin + batch).to(device);
    parts.push_back(cast(compute(network_input(part, input, dtype)), DType::f32));
    if (observer && *observer && begin + batch < count) (*observer)(begin + batch, count);
  }
  return parts.size() == 1 ? parts.front() : concat(parts, 0);
}

}  // namespace

Tensor compute_outputs(Module& model, const Tensor& images, const ImageInput& input) {
  return in_batches(model, images, input, [&](const Tensor& x) { return model.forward(x); });
}

Tensor compute_features(BackboneModel& model, const Tensor& images, const ImageInput& input) {
  return in_batches(model, images, input, [&](const Tensor& x) { return model.head_input(x); });
}

Evaluation evaluate(Module& model, const ImageSet& set, LossKind loss, const ImageInput& input) {
  if (set.count() == 0) return empty_evaluation();
  return to_host(evaluate_on_device(model, set, loss, input), set.labels.to_vector<std::int32_t>());
}

std::vector<float> probabilities(const std::vector<float>& outputs, std::int64_t classes, LossKind loss) {
  if (outputs.empty()) return {};
  const std::int64_t rows = static_cast<std::int64_t>(outputs.size()) / classes;
  return probabilities(Tensor::from(outputs, {rows, classes}), loss).to_vector<float>();
}

Tensor probabilities(const Tensor& outputs, LossKind loss) {
  return loss == LossKind::mse ? divide(outputs, sum(outputs, {1}, {.keep_axes = true})) : softmax(outputs);
}

}  // namespace tandem
