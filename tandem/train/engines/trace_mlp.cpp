// The tape is walked from the output to the input. The probe requires a gradient, so that everything done to
// the input is recorded too.
#include "tandem/train/engines/trace_mlp.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "tandem/ops/activation.h"
#include "tandem/ops/linear.h"
#include "tandem/ops/random.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

std::optional<MlpActivation> mlp_activation(std::string_view node_name) {
  if (node_name == name_of(Activation::sigmoid)) return MlpActivation::sigmoid;
  if (node_name == name_of(Activation::tanh)) return MlpActivation::tanh;
  if (node_name == name_of(Activation::relu)) return MlpActivation::relu;
  return std::nullopt;
}

Tensor apply(MlpActivation activation, const Tensor& x) {
  switch (activation) {
    case MlpActivation::sigmoid:
      return sigmoid(x);
    case MlpActivation::tanh:
      return tanh(x);
    case MlpActivation::relu:
      break;
  }
  return relu(x);
}

bool may_be_mlp(const NamedTensors& parameters) {
  return !parameters.empty() && std::ranges::all_of(parameters, [](const NamedTensor& parameter) {
    const Tensor& tensor = parameter.tensor;
    return tensor.requires_grad() && tensor.dtype() == DType::f32 && tensor.rank() >= 1 && tensor.rank() <= 2;
  });
}

// Reads one tape.
class TapeReader {
 public:
  TapeReader(const Tensor& output, const Tensor& input, const NamedTensors& parameters)
      : at_(output.node().get()), input_(input.node().get()), parameters_(parameters) {}

  // An activation and a step towards the input, or nullopt.
  std::optional<MlpActivation> read_activation() {
    const auto found = at_ && at_->inputs.size() == 1 ? mlp_activation(at_->name) : std::nullopt;
    if (found) at_ = at_->inputs[0].get();
    return found;
  }

  // linear(x, weight, bias), or matmul(x, weightᵀ) + bias.
  std::optional<TracedMlp::Layer> read_linear() {
    if (is("linear", 3)) return layer(at_->inputs[0].get(), at_->inputs[1].get(), at_->inputs[2].get());
    if (!is("add", 2)) return std::nullopt;
    const Node* const bias = at_->inputs[1].get();
    at_ = at_->inputs[0].get();
    if (!is("matmul", 2)) return std::nullopt;
    const Node* const x = at_->inputs[0].get();
    at_ = at_->inputs[1].get();
    if (!is("permute", 1)) return std::nullopt;
    return layer(x, at_->inputs[0].get(), bias);
  }

  // Whether only views of the same elements in the same order lie between here and the input.
  bool reaches_input() {
    while (at_ != input_ && is("reshape", 1)) at_ = at_->inputs[0].get();
    return at_ == input_ && used_.size() == parameters_.size();
  }

 private:
  bool is(std::string_view name, std::size_t inputs) const {
    return at_ && at_->name == name && at_->inputs.size() == inputs;
  }

  // Each parameter may be used once.
  const Tensor* parameter(const Node* node) {
    if (!node || std::ranges::find(used_, node) != used_.end()) return nullptr;
    for (const NamedTensor& each : parameters_)
      if (each.tensor.node().get() == node) {
        used_.push_back(node);
        return &each.tensor;
      }
    return nullptr;
  }

  std::optional<TracedMlp::Layer> layer(const Node* x, const Node* weight_node, const Node* bias_node) {
    const Tensor *const weight = parameter(weight_node), *const bias = parameter(bias_node);
    if (!weight || !bias || weight->rank() != 2 || bias->rank() != 1 || weight->size(0) != bias->size(0))
      return std::nullopt;
    at_ = x;
    return TracedMlp::Layer{.weight = *weight, .bias = *bias};
  }

  const Node* at_;
  const Node* input_;
  const NamedTensors& parameters_;
  std::vector<const Node*> used_;
};

std::optional<TracedMlp> read_tape(const Tensor& output, const Tensor& input, const NamedTensors& parameters,
                                   LossKind loss) {
  TapeReader tape(output, input, parameters);
  TracedMlp traced{.shape = {.loss = loss}, .layers = {}};
  if (loss == LossKind::mse && tape.read_activation() != MlpActivation::sigmoid) return std::nullopt;
  while (true) {
    const auto layer = tape.read_linear();
    if (!layer) return std::nullopt;
    traced.layers.insert(traced.layers.begin(), *layer);
    if (tape.reaches_input()) break;
    const auto activation = tape.read_activation();
    if (!activation || (traced.layers.size() > 1 && *activation != traced.shape.activation))
      return std::nullopt;
    traced.shape.activation = *activation;
  }
  traced.shape.sizes.push_back(traced.layers.front().weight.size(1));
  for (const TracedMlp::Layer& layer : traced.layers) {
    if (layer.weight.size(1) != traced.shape.sizes.back()) return std::nullopt;
    traced.shape.sizes.push_back(layer.weight.size(0));
  }
  return traced;
}

Tensor recompute(const TracedMlp& mlp, const Tensor& input) {
  const NoGrad no_grad;
  Tensor x = input.detach().reshape({input.size(0), -1});
  for (std::size_t i = 0; i < mlp.layers.size(); ++i) {
    x = linear(x, mlp.layers[i].weight, mlp.layers[i].bias);
    if (i + 1 < mlp.layers.size()) x = apply(mlp.shape.activation, x);
  }
  return mlp.shape.loss == LossKind::mse ? sigmoid(x) : x;
}

// A module may compute the same with operations that round differently.
bool is_close(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != DType::f32) return false;
  const std::vector<float> first = a.detach().to_vector<float>(), second = b.to_vector<float>();
  float max = 1;
  for (const float value : second) max = std::max(max, std::abs(value));
  for (std::size_t i = 0; i < first.size(); ++i)
    if (!(std::abs(first[i] - second[i]) <= 1e-4f * max)) return false;
  return true;
}

std::optional<TracedMlp> trace_batch(Module& model, const Tensor& input, const NamedTensors& parameters,
                                     LossKind loss) {
  const Tensor output = model.forward(input);
  if (!output.defined() || !output.requires_grad() || output.rank() != 2) return std::nullopt;
  auto traced = read_tape(output, input, parameters, loss);
  if (!traced || traced->shape.sizes.front() * input.size(0) != input.numel() ||
      !is_close(output, recompute(*traced, input)))
    return std::nullopt;
  return traced;
}

}  // namespace

std::optional<TracedMlp> trace_mlp(Module& model, const Dims& sample, LossKind loss) {
  const NamedTensors parameters = model.parameters();
  if (!may_be_mlp(parameters) || !model.buffers().empty()) return std::nullopt;
  const Device device = parameters.front().tensor.device();
  const bool was_training = model.is_training();
  std::optional<TracedMlp> traced;
  // Batches of different sizes and values: a module may look at either.
  for (const std::int64_t rows : {2, 3}) {
    std::vector<std::int64_t> sizes{rows};
    sizes.insert(sizes.end(), sample.begin(), sample.end());
    Tensor input = uniform(Shape(sizes), 0, 1, {.seed = static_cast<std::uint64_t>(rows), .device = device});
    input.set_requires_grad();
    model.train();
    try {
      traced = trace_batch(model, input, parameters, loss);
    } catch (const Error&) {
      traced.reset();
    }
    model.train(was_training);
    if (!traced) return std::nullopt;
  }
  return traced;
}

}  // namespace tandem
