#include "tandem/train/pretrain/pretrainer.h"

#include <algorithm>
#include <cmath>

#include "tandem/core/check.h"
#include "tandem/nn/model_registry.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/backward.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/embedding_metrics.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/finite.h"
#include "tandem/ops/nt_xent.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/prefixed.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {
namespace {

std::unique_ptr<BackboneModel> new_backbone(const PretrainOptions& options) {
  std::unique_ptr<Module> model =
      make_model({.model = options.model, .channels = 3, .classes = 1}, options.seed);
  auto* const backbone = dynamic_cast<BackboneModel*>(model.get());
  check(backbone != nullptr, "[pretrain] expected a model with a backbone, such as resnet18 or cnn, got {}",
        options.model);
  static_cast<void>(model.release());
  return std::unique_ptr<BackboneModel>(backbone);
}

std::vector<std::int64_t> attribute_sizes(const PretrainOptions& options, const ViewSource& source) {
  return options.attributes > 0 ? source.attribute_sizes() : std::vector<std::int64_t>{};
}

NamedTensors trained(const Module& model) {
  NamedTensors parameters = model.parameters();
  std::erase_if(parameters, [](const NamedTensor& one) { return !one.tensor.requires_grad(); });
  return parameters;
}

void add_to(const Tensor& sum, const Tensor& value) {
  copy_into(sum, add(sum, cast(value.detach(), DType::f64)));
}

}  // namespace

Pretrainer::Pretrainer(const PretrainOptions& options, ViewSource& source)
    : options_(options),
      source_(source),
      input_{.flat = false,
             .height = options.image_size,
             .width = options.image_size,
             .channels = 3,
             .norm = imagenet_norm},
      schedule_{.kind = ScheduleKind::cosine,
                .epochs = options.steps,
                .warmup_steps = std::llround(options.warmup * static_cast<double>(options.steps))},
      model_(new_backbone(options), attribute_sizes(options, source), options.seed) {
  const Device device = *options_.device;
  model_.to(device);
  model_.train();
  optimizer_.emplace(
      trained(model_),
      LarsOptions{.lr = options.learning_rate, .momentum = 0.9, .weight_decay = options.weight_decay});
  average_.emplace(model_.backbone(), options.average);
  loss_ = zeros({}, DType::f64, device);
  accuracy_ = zeros({}, DType::f64, device);
  attribute_loss_ = zeros({}, DType::f64, device);
  count_ = zeros({}, DType::i64, device);
  embeddings_ = zeros({2 * options.batch_size, ContrastiveModel::embedding_size}, DType::f32, device);
  if (!device.is_cuda()) return;
  stream_.emplace(device);
  runner_.emplace(device);
}

double Pretrainer::learning_rate(std::int64_t step) const {
  const double base = options_.learning_rate * static_cast<double>(options_.batch_size) / 1024;
  return learning_rate_at(schedule_, base, step, 0, 1);
}

void Pretrainer::step(std::int64_t number) {
  std::optional<StreamScope> scope;
  if (stream_) scope.emplace(*stream_);
  const MatmulPrecisionScope precision(*options_.precision);
  source_.prepare(number);
  optimizer_->set_learning_rate(learning_rate(number));
  optimizer_->prepare_step();
  if (!runner_) return compute_step();
  runner_->run([&] { compute_step(); });
}

void Pretrainer::compute_step() {
  source_.render();
  const bool use_bf16 = *options_.precision == MatmulPrecision::bf16 && stream_;
  const Tensor features = model_.backbone().features(
      network_input(source_.images(), input_, use_bf16 ? DType::bf16 : DType::f32));
  const Tensor embeddings = model_.project(features);
  const NtXentResult contrast = nt_xent_with_accuracy(embeddings, {.temperature = options_.temperature});
  Tensor loss = contrast.loss;
  Tensor attribute_loss;
  const Tensor attributes = options_.attributes > 0 ? source_.attributes() : Tensor();
  if (attributes.defined()) {
    attribute_loss = model_.attribute_loss(features, attributes);
    loss = add(loss, multiply(attribute_loss, options_.attributes));
  }
  backward(loss);
  const NoGrad no_grad;
  optimizer_->apply();
  optimizer_->zero_grad();
  average_->update();
  add_to(loss_, contrast.loss);
  add_to(accuracy_, contrast.retrieval_accuracy);
  if (attribute_loss.defined()) add_to(attribute_loss_, attribute_loss);
  copy_into(count_, add(count_, 1));
  copy_into(embeddings_, embeddings.detach());
}

void Pretrainer::synchronize() {
  if (stream_) stream_->view().synchronize();
}

ContrastiveFigures Pretrainer::take_figures() {
  synchronize();
  std::optional<StreamScope> scope;
  if (stream_) scope.emplace(*stream_);
  const auto steps = static_cast<double>(std::max<std::int64_t>(count_.item<std::int64_t>(), 1));
  const ContrastiveFigures figures{.loss = loss_.item<double>() / steps,
                                   .retrieval_accuracy = accuracy_.item<double>() / steps,
                                   .attribute_loss = attribute_loss_.item<double>() / steps,
                                   .alignment = alignment(embeddings_).item<float>(),
                                   .uniformity = uniformity(embeddings_).item<float>()};
  for (const auto& [name, sum] : sums()) clear(sum);
  return figures;
}

NamedTensors Pretrainer::sums() const {
  return {{"loss", loss_}, {"accuracy", accuracy_}, {"attribute_loss", attribute_loss_}, {"count", count_}};
}

NamedTensors Pretrainer::state() const {
  NamedTensors all;
  add_prefixed(all, "model.", model_.state_dict());
  add_prefixed(all, "optimizer.", optimizer_->state());
  add_prefixed(all, "average.", average_->state());
  add_prefixed(all, "sums.", sums());
  return all;
}

void Pretrainer::load_state(const NamedTensors& state) {
  model_.load_state_dict(take_prefixed("model.", state));
  optimizer_->load_state(take_prefixed("optimizer.", state));
  average_->load_state(take_prefixed("average.", state));
  const NamedTensors saved = take_prefixed("sums.", state);
  for (const auto& [name, sum] : sums()) {
    const auto found = std::ranges::find(saved, name, &NamedTensor::name);
    check(found != saved.end() && found->tensor.dtype() == sum.dtype() && found->tensor.numel() == 1,
          "[pretrain] expected the sum '{}'", name);
    copy_into(sum, found->tensor.to(sum.device()).reshape({}));
  }
}

bool Pretrainer::is_finite() const {
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : state())
    if (is_floating(tensor.dtype())) tensors.push_back(tensor.detach());
  return all_finite(tensors);
}

NamedTensors Pretrainer::averaged_backbone() const {
  const std::unique_ptr<BackboneModel> copy = new_backbone(options_);
  average_->copy_to(*copy);
  NamedTensors weights = copy->state_dict();
  std::erase_if(weights, [&](const NamedTensor& one) { return copy->is_head(one.name); });
  return weights;
}

}  // namespace tandem::detail
