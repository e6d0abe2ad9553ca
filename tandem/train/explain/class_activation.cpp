#include "tandem/train/explain/class_activation.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/ops/activation.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/backward.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/reduce.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/evaluation_mode.h"

namespace tandem {
namespace {

bool reads(const TracedOp& op, const Tensor& tensor) {
  return std::ranges::any_of(op.inputs, [&](const Tensor& input) { return input.node() == tensor.node(); });
}

// The output of the last convolutional block: of the last convolution, and of the operations after it as long
// as they keep its shape.
Tensor last_block(const std::vector<TracedOp>& ops) {
  Tensor found;
  for (const TracedOp& op : ops) {
    const Tensor& y = op.output;
    const bool convolution = std::string_view(op.name) == "conv2d" && y.size(1) * y.size(2) > 1;
    if (convolution || (found.defined() && y.shape() == found.shape() && reads(op, found))) found = y;
  }
  return found;
}

// Puts back the gradients that backward() adds to.
class KeptGradients {
 public:
  explicit KeptGradients(const Module& model) : parameters_(model.parameters()) {
    for (const NamedTensor& parameter : parameters_) gradients_.push_back(parameter.tensor.grad());
  }
  ~KeptGradients() {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (parameters_[i].tensor.requires_grad()) parameters_[i].tensor.set_grad(gradients_[i]);
  }
  KeptGradients(const KeptGradients&) = delete;
  KeptGradients& operator=(const KeptGradients&) = delete;

 private:
  NamedTensors parameters_;
  std::vector<Tensor> gradients_;
};

// 1 at each image's class, elsewhere 0.
Tensor class_gradient(const Tensor& outputs, std::span<const std::int64_t> classes) {
  check(outputs.rank() == 2 && outputs.size(0) == std::ssize(classes),
        "[explain] expected one class for each of {} images, got {}", outputs.size(0), classes.size());
  std::vector<float> ones(static_cast<std::size_t>(outputs.numel()), 0.0f);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    check(classes[i] >= 0 && classes[i] < outputs.size(1),
          "[explain] expected a class from 0 to below {}, got {}", outputs.size(1), classes[i]);
    ones[i * static_cast<std::size_t>(outputs.size(1)) + static_cast<std::size_t>(classes[i])] = 1;
  }
  return Tensor::from(ones, outputs.shape(), outputs.device());
}

}  // namespace

ActivationMethod parse_activation_method(std::string_view text) {
  for (const ActivationMethod method : {ActivationMethod::grad_cam, ActivationMethod::layer_cam})
    if (text == name_of(method)) return method;
  fail("[explain] expected grad-cam or layer-cam as the method, got '{}'", text);
}

const char* name_of(ActivationMethod method) {
  return method == ActivationMethod::grad_cam ? "grad-cam" : "layer-cam";
}

Tensor class_activation_maps(Module& model, const Tensor& x, std::span<const std::int64_t> classes,
                             ActivationMethod method) {
  const EvaluationMode mode(model);
  const KeptGradients kept(model);
  Tensor input = x.detach();
  input.set_requires_grad();  // also the operations of a frozen model are recorded
  Tensor activation, gradient;
  {
    const Trace trace;
    const Tensor outputs = cast(model.forward(input), DType::f32);
    activation = last_block(trace.ops());
    if (!activation.defined()) return {};
    Node& node = *activation.node();
    node.backward = [&gradient, inputs = node.inputs.size()](const Tensor& of_output) {
      gradient = of_output;
      return Gradients(inputs);  // the pass ends here
    };
    node.backward_of_terms = nullptr;
    backward(outputs, class_gradient(outputs, classes));
  }
  expect(gradient.defined());
  const NoGrad no_grad;
  activation = cast(activation.detach(), DType::f32);
  gradient = cast(gradient, DType::f32);
  const Tensor weights =
      method == ActivationMethod::grad_cam ? mean(gradient, {1, 2}, {.keep_axes = true}) : relu(gradient);
  return relu(sum(multiply(activation, weights), {3}));
}

HeatMap scaled_heat(const Tensor& maps, std::int64_t image_height, std::int64_t image_width) {
  HeatMap heat{.height = maps.size(1),
               .width = maps.size(2),
               .values = maps[0].to_vector<float>(),
               .covered_width = static_cast<double>(image_width),
               .covered_height = static_cast<double>(image_height)};
  const float peak = std::ranges::max(heat.values);
  if (peak > 0)
    for (float& value : heat.values) value /= peak;
  return heat;
}

}  // namespace tandem
