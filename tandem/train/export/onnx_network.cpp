// Tandem's images are (n, height, width, channels), ONNX's are (n, channels, height, width). Values with four
// axes stay in ONNX's order as long as the operations allow it.
#include "tandem/train/export/onnx_network.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/fused_activation.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

// A value of the graph, with the shape it has in Tandem.
struct Value {
  std::string name;
  Shape shape;
  bool channels_first = false;  // four axes in ONNX's order
};

std::vector<std::int64_t> sizes_of(const Dims& dims) {
  return {dims.begin(), dims.end()};
}

OnnxAttribute both(const char* name, const Dims& yx) {
  return onnx_attribute(name, std::vector<std::int64_t>{yx[0], yx[1]});
}

// Operations that are one ONNX operator with the same operands.
struct SameOp {
  std::string_view name;
  const char* onnx;
};
constexpr std::array unary_ops{SameOp{"relu", "Relu"},    SameOp{"sigmoid", "Sigmoid"},
                               SameOp{"tanh", "Tanh"},    SameOp{"exp", "Exp"},
                               SameOp{"log", "Log"},      SameOp{"sqrt", "Sqrt"},
                               SameOp{"absolute", "Abs"}, SameOp{"hardswish", "HardSwish"}};
constexpr std::array binary_ops{SameOp{"add", "Add"}, SameOp{"subtract", "Sub"}, SameOp{"multiply", "Mul"},
                                SameOp{"divide", "Div"}, SameOp{"maximum", "Max"}};

template <std::size_t n>
const char* find(const std::array<SameOp, n>& list, std::string_view name) {
  for (const SameOp& op : list)
    if (op.name == name) return op.onnx;
  return nullptr;
}

class NetworkGraph {
 public:
  NetworkGraph(OnnxBuilder& builder, const Trace& trace, const NamedTensors& parameters, OnnxType weights)
      : builder_(builder), trace_(trace), weights_(weights) {
    for (const NamedTensor& parameter : parameters)
      if (parameter.tensor.node()) names_[parameter.tensor.node().get()] = parameter.name;
    for (const TracedOp& op : trace.ops())
      for (const Tensor& input : op.inputs)
        if (input.defined() && input.node()) ++uses_[input.node().get()];
  }

  void set_value(const Tensor& tensor, Value value) { values_[tensor.node().get()] = std::move(value); }
  const Value* find_value(const Tensor& tensor) const {
    const auto found = values_.find(tensor.node().get());
    return found == values_.end() ? nullptr : &found->second;
  }

  void add_all() {
    const std::vector<TracedOp>& ops = trace_.ops();
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (find_value_of_inputs(ops[i])) set_value(ops[i].output, add(ops[i]));
  }

  // The value with the axes in Tandem's order.
  std::string plain(const Value& value) {
    if (!value.channels_first) return value.name;
    return builder_.add("Transpose", {value.name},
                        {onnx_attribute("perm", std::vector<std::int64_t>{0, 2, 3, 1})});
  }

 private:
  // Whether the operation computes with something that depends on the network's input.
  bool find_value_of_inputs(const TracedOp& op) const {
    for (const Tensor& input : op.inputs)
      if (input.defined() && (find_value(input) || pending_.contains(input.node().get()))) return true;
    return false;
  }

  const Value& value(const TracedOp& op, std::size_t i) const {
    const Value* const found = i < op.inputs.size() ? find_value(op.inputs[i]) : nullptr;
    check(found != nullptr, "[export] expected operand {} of '{}' to depend on the network's input", i,
          op.name);
    return *found;
  }

  // Four axes in ONNX's order.
  std::string image(const Value& value) {
    expect(value.shape.rank() == 4);
    if (value.channels_first) return value.name;
    return builder_.add("Transpose", {value.name},
                        {onnx_attribute("perm", std::vector<std::int64_t>{0, 3, 1, 2})});
  }

  // A tensor that does not depend on the input; its parameter name if it has one.
  std::string constant(const Tensor& tensor, const Tensor& reordered, bool is_weight = false) {
    check(tensor.dtype() == DType::f32, "[export] expected weights in f32, got {}", name_of(tensor.dtype()));
    const auto name = names_.find(tensor.node().get());
    const std::vector<float> values = reordered.detach().to_vector<float>();
    return builder_.weights(name == names_.end() ? "" : name->second, sizes_of(reordered.shape()), values,
                            is_weight ? weights_ : OnnxType::f32);
  }

  std::string vector(const std::string& name, const std::vector<float>& values) {
    return builder_.array(name, {std::ssize(values)}, values);
  }

  // An operand that is broadcast to `rank` axes; with four in ONNX's order.
  std::string operand(const TracedOp& op, std::size_t i, int rank) {
    const Tensor& tensor = op.inputs[i];
    if (const Value* const found = find_value(tensor)) {
      if (rank != 4) return plain(*found);
      check(found->shape.rank() == 4 || found->shape.numel() == 1,
            "[export] expected operands of '{}' with the same number of axes, got {} for {}", op.name,
            found->shape.to_string(), op.output.shape().to_string());
      return found->shape.rank() == 4 ? image(*found) : found->name;
    }
    if (rank != 4) return constant(tensor, tensor);
    Dims sizes = Dims::filled(4, 1);
    for (int axis = 0; axis < tensor.rank(); ++axis) sizes[4 - tensor.rank() + axis] = tensor.shape()[axis];
    return constant(tensor, tensor.detach().reshape(sizes).permute({0, 3, 1, 2}));
  }

  // A result that has the axes of image() if there are four.
  Value result(const TracedOp& op, std::string name) const {
    return {.name = std::move(name), .shape = op.output.shape(), .channels_first = op.output.rank() == 4};
  }

  // The same for a function of one operand, which keeps its order.
  Value same_order(const TracedOp& op, const std::string& onnx, OnnxBuilder::Attributes attributes = {}) {
    const Value x = value(op, 0);
    return {.name = builder_.add(onnx, {x.name}, std::move(attributes)),
            .shape = op.output.shape(),
            .channels_first = x.channels_first};
  }

  Value add(const TracedOp& op) {
    const std::string_view name = op.name;
    if (const char* const onnx = find(unary_ops, name)) return same_order(op, onnx);
    if (const char* const onnx = find(binary_ops, name)) {
      const int rank = op.output.rank();
      const std::string a = operand(op, 0, rank), b = operand(op, 1, rank);
      return result(op, builder_.add(onnx, {a, b}));
    }
    if (name == "conv2d") return convolution(op);
    if (name == "batch_norm") return batch_norm(op);
    if (name == "max_pool2d" || name == "avg_pool2d") return pool(op);
    if (name == "adaptive_avg_pool2d") return adaptive_pool(op);
    if (name == "squeeze") return squeeze(op);
    if (name == "excite") return excite(op);
    if (name == "linear") return linear(op);
    if (name == "matmul")
      return {builder_.add("MatMul", {operand(op, 0, 2), operand(op, 1, 2)}), op.output.shape(), false};
    if (name == "reshape") return reshape(op);
    if (name == "permute") return permute(op);
    if (name == "concat") return concat(op);
    if (name == "sum") return reduce(op, "ReduceSum");
    if (name == "max") return reduce(op, "ReduceMax");
    if (name == "clone" || name == "to")
      return {value(op, 0).name, op.output.shape(), value(op, 0).channels_first};
    if (name == "hardsigmoid")
      return same_order(op, "HardSigmoid", {onnx_attribute("alpha", 1.0f / 6), onnx_attribute("beta", 0.5f)});
    if (name == "silu") return product(op, builder_.add("Sigmoid", {value(op, 0).name}));
    if (name == "square") return product(op, value(op, 0).name);
    if (name == "gelu") return gelu(op);
    if (name == "pow") return power(op);
    if (name == "softmax") {
      const Value& x = value(op, 0);
      return {builder_.add("Softmax", {plain(x)}, {onnx_attribute("axis", std::int64_t{-1})}),
              op.output.shape(), false};
    }
    fail("[export] the network uses '{}', which cannot be exported to ONNX", op.name);
  }

  // x · other
  Value product(const TracedOp& op, const std::string& other) {
    const Value& x = value(op, 0);
    return {builder_.add("Mul", {x.name, other}), op.output.shape(), x.channels_first};
  }

  // x · 0.5 · (1 + erf(x / √2))
  Value gelu(const TracedOp& op) {
    const auto number = [&](double value) { return builder_.number(value, OnnxType::f32); };
    const std::string scaled = builder_.add("Mul", {value(op, 0).name, number(std::sqrt(0.5))});
    const std::string sum = builder_.add("Add", {builder_.add("Erf", {scaled}), number(1)});
    return product(op, builder_.add("Mul", {sum, number(0.5)}));
  }

  Value power(const TracedOp& op) {
    const Value& x = value(op, 0);
    const std::string exponent = builder_.number(op.numbers.at("exponent"), OnnxType::f32);
    return {builder_.add("Pow", {x.name, exponent}), op.output.shape(), x.channels_first};
  }

  OnnxBuilder::Attributes window(const TracedOp& op) const {
    const Dims& padding = op.sizes.at("padding");
    return {
        both("strides", op.sizes.at("stride")), both("dilations", op.sizes.at("dilation")),
        onnx_attribute("pads", std::vector<std::int64_t>{padding[0], padding[1], padding[0], padding[1]})};
  }

  std::string convolve(const TracedOp& op, const std::string& weight, const std::string& bias) {
    OnnxBuilder::Attributes attributes = window(op);
    const Tensor& kernel = op.inputs[1];
    attributes.push_back(
        onnx_attribute("kernel_shape", std::vector<std::int64_t>{kernel.size(1), kernel.size(2)}));
    attributes.push_back(onnx_attribute("group", op.sizes.at("groups")[0]));
    OnnxBuilder::Names inputs{image(value(op, 0)), weight};
    if (!bias.empty()) inputs.push_back(bias);
    return builder_.add("Conv", std::move(inputs), std::move(attributes));
  }

  Value convolution(const TracedOp& op) {
    const Tensor& weight = op.inputs[1];
    const Tensor& bias = op.inputs[2];
    check(!find_value(weight) && !(bias.defined() && find_value(bias)),
          "[export] expected a convolution with constant weights");
    if (uses_[op.output.node().get()] == 1 && feeds_batch_norm(op)) {
      pending_[op.output.node().get()] = &op;  // added with its batch norm
      return {.name = "", .shape = op.output.shape(), .channels_first = true};
    }
    const std::string filters = constant(weight, weight.detach().permute({0, 3, 1, 2}), true);
    return result(op, convolve(op, filters, bias.defined() ? constant(bias, bias) : ""));
  }

  bool feeds_batch_norm(const TracedOp& conv) const {
    for (const TracedOp& op : trace_.ops())
      if (std::string_view(op.name) == "batch_norm" && op.inputs[0].node() == conv.output.node()) return true;
    return false;
  }

  // y = scale · x + shift per channel, then the residual and the activation.
  Value batch_norm(const TracedOp& op) {
    check(op.numbers.at("training") == 0, "[export] expected batch norms with running statistics");
    const auto values = [](const Tensor& tensor) { return tensor.detach().to_vector<double>(); };
    const std::vector<double> weight = values(op.inputs[1]), bias = values(op.inputs[2]),
                              mean = values(op.tensors.at("mean")),
                              variance = values(op.tensors.at("variance"));
    std::vector<double> scale, shift;
    for (std::size_t c = 0; c < weight.size(); ++c) {
      scale.push_back(weight[c] / std::sqrt(variance[c] + op.numbers.at("epsilon")));
      shift.push_back(bias[c] - mean[c] * scale[c]);
    }
    std::string y;
    if (const auto found = pending_.find(op.inputs[0].node().get()); found != pending_.end())
      y = folded(*found->second, scale, shift);
    else
      y = scaled(op, scale, shift);
    Value value = result(op, y);
    if (op.inputs[3].defined())
      value.name = builder_.add("Add", {value.name, operand(op, 3, op.output.rank())});
    value.name = activated(static_cast<FusedActivation>(op.numbers.at("activation")), value.name);
    return value;
  }

  std::string activated(FusedActivation activation, const std::string& x) {
    switch (activation) {
      case FusedActivation::relu:
        return builder_.add("Relu", {x});
      case FusedActivation::silu:
        return builder_.add("Mul", {x, builder_.add("Sigmoid", {x})});
      case FusedActivation::hardswish:
        return builder_.add("HardSwish", {x});
      case FusedActivation::none:
        break;
    }
    return x;
  }

  std::string folded(const TracedOp& conv, const std::vector<double>& scale,
                     const std::vector<double>& shift) {
    const Tensor& weight = conv.inputs[1];
    const Tensor reordered = weight.detach().permute({0, 3, 1, 2});
    const auto in_double = reordered.to_vector<double>();
    const std::size_t row = in_double.size() / scale.size();
    std::vector<float> filters(in_double.size()), bias(scale.size());
    for (std::size_t i = 0; i < filters.size(); ++i)
      filters[i] = static_cast<float>(in_double[i] * scale[i / row]);
    const auto own_bias = conv.inputs[2].defined() ? conv.inputs[2].detach().to_vector<double>()
                                                   : std::vector<double>(scale.size(), 0.0);
    for (std::size_t c = 0; c < bias.size(); ++c)
      bias[c] = static_cast<float>(own_bias[c] * scale[c] + shift[c]);
    const auto name = names_.find(weight.node().get());
    const std::string known = name == names_.end() ? "conv.weight" : name->second;
    const std::string stored = builder_.weights(known, sizes_of(reordered.shape()), filters, weights_);
    return convolve(conv, stored, vector(known.substr(0, known.rfind('.')) + ".folded_bias", bias));
  }

  // A batch norm without a convolution before it.
  std::string scaled(const TracedOp& op, const std::vector<double>& scale, const std::vector<double>& shift) {
    const Value& x = value(op, 0);
    const std::vector<float> factors(scale.begin(), scale.end()), terms(shift.begin(), shift.end());
    const bool images = x.shape.rank() == 4;
    const OnnxDims dims = images ? OnnxDims{std::ssize(scale), 1, 1} : OnnxDims{std::ssize(scale)};
    const std::string from = images ? image(x) : plain(x);
    const std::string product = builder_.add("Mul", {from, builder_.array("", dims, factors)});
    return builder_.add("Add", {product, builder_.array("", dims, terms)});
  }

  Value pool(const TracedOp& op) {
    OnnxBuilder::Attributes attributes = window(op);
    attributes.push_back(both("kernel_shape", op.sizes.at("kernel")));
    const bool average = std::string_view(op.name) == "avg_pool2d";
    if (average) {
      std::erase_if(attributes,
                    [](const OnnxAttribute& each) { return each.name == "dilations"; });  // opset 19
      attributes.push_back(onnx_attribute("count_include_pad", std::int64_t{1}));
    }
    return result(
        op, builder_.add(average ? "AveragePool" : "MaxPool", {image(value(op, 0))}, std::move(attributes)));
  }

  // The shares of `in` pixels in `out` means: (out, in).
  std::string averages(std::int64_t in, std::int64_t out) {
    std::vector<float> shares(static_cast<std::size_t>(in * out), 0.0f);
    for (std::int64_t i = 0; i < out; ++i) {
      const std::int64_t begin = i * in / out, end = ((i + 1) * in + out - 1) / out;
      for (std::int64_t k = begin; k < end; ++k)
        shares[static_cast<std::size_t>(i * in + k)] = 1.0f / static_cast<float>(end - begin);
    }
    return builder_.array("", {out, in}, shares);
  }

  Value adaptive_pool(const TracedOp& op) {
    const Value& x = value(op, 0);
    const std::int64_t height = x.shape[1], width = x.shape[2];
    const std::int64_t rows = op.output.size(1), columns = op.output.size(2);
    if (rows == 1 && columns == 1) return result(op, builder_.add("GlobalAveragePool", {image(x)}));
    if (rows == height && columns == width) return result(op, image(x));
    // rows · x · columnsᵀ for every channel
    const std::string right = builder_.add("Transpose", {averages(width, columns)},
                                           {onnx_attribute("perm", std::vector<std::int64_t>{1, 0})});
    const std::string narrow = builder_.add("MatMul", {image(x), right});
    return result(op, builder_.add("MatMul", {averages(height, rows), narrow}));
  }

  // The mean of each image: (n, height, width, channels) → (n, channels).
  Value squeeze(const TracedOp& op) {
    const std::string means = builder_.add("GlobalAveragePool", {image(value(op, 0))});
    return {builder_.add("Reshape", {means, builder_.integers({0, op.output.size(1)})}), op.output.shape(),
            false};
  }

  // Images times factors (n, channels).
  Value excite(const TracedOp& op) {
    const Value* const images = find_value(op.tensors.at("images"));
    check(images != nullptr, "[export] expected the images of 'excite' to depend on the network's input");
    const std::string factors =
        builder_.add("Reshape", {plain(value(op, 0)), builder_.integers({0, op.output.size(3), 1, 1})});
    return result(op, builder_.add("Mul", {image(*images), factors}));
  }

  Value linear(const TracedOp& op) {
    const Tensor &weight = op.inputs[1], &bias = op.inputs[2];
    OnnxBuilder::Names inputs{plain(value(op, 0)), constant(weight, weight, true)};
    if (bias.defined()) inputs.push_back(constant(bias, bias));
    return result(op, builder_.add("Gemm", std::move(inputs), {onnx_attribute("transB", std::int64_t{1})}));
  }

  Value reshape(const TracedOp& op) {
    const Value& x = value(op, 0);
    const Shape& from = x.shape;
    const Shape& to = op.output.shape();
    check(from.rank() > 0 && to.rank() > 0 && from[0] == to[0],
          "[export] expected a reshape that keeps the images apart, got {} to {}", from.to_string(),
          to.to_string());
    std::vector<std::int64_t> sizes = sizes_of(to);
    sizes[0] = 0;  // any number of images
    const bool from_pixel = x.channels_first && from[1] == 1 && from[2] == 1;
    if (to.rank() == 4 && to[1] == 1 && to[2] == 1 && (from_pixel || !x.channels_first)) {
      sizes = {0, to[3], 1, 1};
      return {builder_.add("Reshape", {x.name, builder_.integers(sizes)}), to, true};
    }
    // One pixel or one channel has the same order in both layouts.
    const bool same_order = from_pixel || (x.channels_first && from[3] == 1);
    return {builder_.add("Reshape", {same_order ? x.name : plain(x), builder_.integers(sizes)}), to, false};
  }

  Value permute(const TracedOp& op) {
    const Dims& inverse = op.sizes.at("inverse");
    std::vector<std::int64_t> axes(static_cast<std::size_t>(inverse.rank()));
    for (int axis = 0; axis < inverse.rank(); ++axis) axes[static_cast<std::size_t>(inverse[axis])] = axis;
    return {builder_.add("Transpose", {plain(value(op, 0))}, {onnx_attribute("perm", axes)}),
            op.output.shape(), false};
  }

  // The axis in ONNX's order.
  static std::int64_t onnx_axis_of(std::int64_t axis, int rank) {
    constexpr std::array<std::int64_t, 4> axes{0, 2, 3, 1};
    return rank == 4 ? axes[static_cast<std::size_t>(axis)] : axis;
  }

  Value concat(const TracedOp& op) {
    const int rank = op.output.rank();
    OnnxBuilder::Names inputs;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      check(find_value(op.inputs[i]) != nullptr,
            "[export] expected a concatenation of values of the network");
      inputs.push_back(operand(op, i, rank));
    }
    const std::int64_t axis = onnx_axis_of(op.sizes.at("axis")[0], rank);
    return result(op, builder_.add("Concat", std::move(inputs), {onnx_attribute("axis", axis)}));
  }

  // The recorded result keeps reduced axes with size 1.
  Value reduce(const TracedOp& op, const char* onnx) {
    const Value& x = value(op, 0);
    const int rank = x.shape.rank();
    expect(op.output.rank() == rank);
    std::vector<std::int64_t> axes;
    for (int axis = 0; axis < rank; ++axis)
      if (op.output.shape()[axis] != x.shape[axis]) axes.push_back(onnx_axis_of(axis, rank));
    check(axes.empty() || axes.front() > 0, "[export] expected '{}' over each image, got one over the batch",
          op.name);
    const std::string from = rank == 4 ? image(x) : plain(x);
    if (axes.empty()) return result(op, from);
    return result(op, builder_.add(onnx, {from, builder_.integers(axes)},
                                   {onnx_attribute("keepdims", std::int64_t{1})}));
  }

  OnnxBuilder& builder_;
  const Trace& trace_;
  OnnxType weights_;
  std::map<const Node*, Value> values_;
  std::map<const Node*, const TracedOp*> pending_;  // convolutions that wait for their batch norm
  std::map<const Node*, std::string> names_;        // of parameters
  std::map<const Node*, int> uses_;
};

}  // namespace

std::string add_network(OnnxBuilder& builder, Module& module, const NetworkInput& shape,
                        const std::string& input, OnnxType weights) {
  const NamedTensors parameters = module.parameters();
  for (const NamedTensor& parameter : parameters)
    check(parameter.tensor.device() == cpu_device, "[export] expected a module on the CPU, got {} on {}",
          parameter.name, parameter.tensor.device().to_string());
  // Two images, so that a size that belongs to the batch differs from 1.
  Tensor x = full({2, shape.height, shape.width, shape.channels}, 0.5, DType::f32);
  x.set_requires_grad();
  const bool was_training = module.is_training();
  module.eval();
  const Trace trace;
  const Tensor output = module.forward(shape.flat ? x.reshape({2, -1}) : x);
  if (was_training) module.train();
  NetworkGraph graph(builder, trace, parameters, weights);
  graph.set_value(x, {.name = input, .shape = x.shape(), .channels_first = true});
  graph.add_all();
  const Value* const found = graph.find_value(output);
  check(found != nullptr,
        "[export] expected a network whose output depends on its input by recorded operations");
  return graph.plain(*found);
}

}  // namespace tandem
