// Field numbers are those of onnx.proto. Memory is bounded by the size of the file: every part that a few
// bytes could claim is counted.
#include "tandem/files/onnx/onnx_reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "tandem/core/check.h"
#include "tandem/files/onnx/protobuf.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

constexpr int max_depth = 16;
constexpr std::int64_t max_parts = 1 << 21;
constexpr std::size_t max_axes = 64, max_values = std::size_t{1} << 40;

// The values of a tensor that are not in raw_data.
struct TypedData {
  std::vector<std::int64_t> ints;
  std::vector<float> floats;
  std::vector<double> doubles;
};

template <class To, class From>
std::string packed(const std::vector<From>& values) {
  std::string data(values.size() * sizeof(To), '\0');
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<To>(values[i]);
    std::memcpy(data.data() + i * sizeof(To), &value, sizeof value);
  }
  return data;
}

std::string packed(OnnxType type, const TypedData& data) {
  if (!data.floats.empty()) return packed<float>(data.floats);
  if (!data.doubles.empty()) return packed<double>(data.doubles);
  switch (size_of(type)) {  // halves are stored as their bits
    case 1:
      return packed<std::uint8_t>(data.ints);
    case 2:
      return packed<std::uint16_t>(data.ints);
    case 4:
      return packed<std::uint32_t>(data.ints);
    default:
      return packed<std::int64_t>(data.ints);
  }
}

class Parser {
 public:
  explicit Parser(const std::string& file) : file_(file) {}

  OnnxModel model(ProtoReader fields) {
    OnnxModel model{.ir_version = 0};
    bool has_graph = false;
    while (fields.next()) switch (fields.field()) {
        case 1:
          model.ir_version = fields.get_int();
          break;
        case 2:
          model.producer = text(fields);
          break;
        case 3:
          model.producer_version = text(fields);
          break;
        case 7:
          model.graph = graph(fields.get_message(), 1);
          has_graph = true;
          break;
        case 8:
          model.opsets.push_back(opset(part(fields)));
          break;
        case 14:
          model.metadata.insert(entry(part(fields)));
          break;
        case 25:
          ++model.functions;
          break;
      }
    check(has_graph && model.ir_version > 0, "[onnx] {}: not an ONNX file: it has no {}", file_,
          has_graph ? "version" : "graph");
    return model;
  }

 private:
  const ProtoReader& part(const ProtoReader& fields) {
    check(++parts_ <= max_parts, "[onnx] {}: expected at most {} nodes, constants and names in a file", file_,
          max_parts);
    return fields;
  }
  std::string text(const ProtoReader& fields) { return std::string(part(fields).get_bytes()); }

  static std::pair<std::string, std::string> entry(const ProtoReader& of) {
    std::pair<std::string, std::string> found;
    ProtoReader fields = of.get_message();
    while (fields.next()) {
      if (fields.field() == 1) found.first = fields.get_bytes();
      if (fields.field() == 2) found.second = fields.get_bytes();
    }
    return found;
  }

  static std::pair<std::string, std::int64_t> opset(const ProtoReader& of) {
    std::pair<std::string, std::int64_t> found;
    ProtoReader fields = of.get_message();
    while (fields.next()) {
      if (fields.field() == 1) found.first = fields.get_bytes();
      if (fields.field() == 2) found.second = fields.get_int();
    }
    return found;
  }

  OnnxTensor tensor(ProtoReader fields) {
    OnnxTensor tensor;
    TypedData typed;
    bool external = false;
    while (fields.next()) switch (fields.field()) {
        case 1:
          fields.append_ints(tensor.dims, max_axes);
          break;
        case 2:
          tensor.type = static_cast<OnnxType>(fields.get_int());
          break;
        case 4:
          fields.append_floats(typed.floats, max_values);
          break;
        case 5:
        case 7:
        case 11:
          fields.append_ints(typed.ints, max_values);
          break;
        case 8:
          tensor.name = text(fields);
          break;
        case 9:
          tensor.data = fields.get_bytes();
          break;
        case 10:
          fields.append_doubles(typed.doubles, max_values);
          break;
        case 13:
          if (const auto [key, value] = entry(part(fields)); key == "location") tensor.external = value;
          break;
        case 14:
          external = fields.get_int() == 1;
          break;
      }
    if (external && tensor.external.empty()) tensor.external = "?";
    check_tensor(tensor, typed);
    return tensor;
  }

  void check_tensor(OnnxTensor& tensor, const TypedData& typed) const {
    std::int64_t count = 0, bytes = 0;
    try {
      count = element_count(tensor.dims);
    } catch (const Error&) {
      fail("[onnx] {}: the constant '{}' has the sizes {}, whose product is not a number of elements", file_,
           one_line(tensor.name), to_string(tensor.dims));
    }
    const std::int64_t size = size_of(tensor.type);
    if (!tensor.external.empty() || size == 0) {  // no values here that can be used
      tensor.data.clear();
      return;
    }
    if (tensor.data.empty()) tensor.data = packed(tensor.type, typed);
    check(!__builtin_mul_overflow(count, size, &bytes) && bytes == std::ssize(tensor.data),
          "[onnx] {}: the constant '{}' of {} {} has {} bytes of data", file_, one_line(tensor.name),
          name_of(tensor.type), to_string(tensor.dims), tensor.data.size());
  }

  OnnxAttribute attribute(ProtoReader fields, int depth) {
    OnnxAttribute found;
    while (fields.next()) switch (fields.field()) {
        case 1:
          found.name = text(fields);
          break;
        case 2:
          found.number = fields.get_float();
          break;
        case 3:
          found.integer = fields.get_int();
          break;
        case 4:
          found.text = text(fields);
          break;
        case 5:
        case 10:
          found.tensors.push_back(tensor(part(fields).get_message()));
          break;
        case 6:
        case 11:
          found.graphs.push_back(graph(part(fields).get_message(), depth + 1));
          break;
        case 7:
          fields.append_floats(found.numbers, max_values);
          break;
        case 8:
          fields.append_ints(found.integers, max_values);
          break;
        case 20:
          found.kind = static_cast<OnnxAttribute::Kind>(fields.get_int());
          break;
      }
    return found;
  }

  OnnxNode node(ProtoReader fields, int depth) {
    OnnxNode node;
    while (fields.next()) switch (fields.field()) {
        case 1:
          node.inputs.push_back(text(fields));
          break;
        case 2:
          node.outputs.push_back(text(fields));
          break;
        case 3:
          node.name = text(fields);
          break;
        case 4:
          node.op = text(fields);
          break;
        case 5:
          node.attributes.push_back(attribute(part(fields).get_message(), depth));
          break;
        case 7:
          node.domain = text(fields);
          break;
      }
    return node;
  }

  std::vector<OnnxSize> shape(ProtoReader fields) {
    std::vector<OnnxSize> sizes;
    while (fields.next()) {
      if (fields.field() != 1) continue;
      OnnxSize& size = sizes.emplace_back();
      ProtoReader dim = part(fields).get_message();
      while (dim.next()) {
        if (dim.field() == 1) size.value = dim.get_int();
        if (dim.field() == 2) size.name = dim.get_bytes();
      }
    }
    return sizes;
  }

  OnnxValue value(ProtoReader fields) {
    OnnxValue value{.has_shape = false};
    while (fields.next()) {
      if (fields.field() == 1) value.name = text(fields);
      if (fields.field() != 2) continue;
      ProtoReader type = fields.get_message();
      while (type.next()) {
        if (type.field() != 1) continue;
        ProtoReader tensor = type.get_message();
        while (tensor.next()) {
          if (tensor.field() == 1) value.type = static_cast<OnnxType>(tensor.get_int());
          if (tensor.field() == 2) {
            value.sizes = shape(tensor.get_message());
            value.has_shape = true;
          }
        }
      }
    }
    return value;
  }

  OnnxGraph graph(ProtoReader fields, int depth) {
    check(depth <= max_depth, "[onnx] {}: expected graphs at most {} deep inside each other", file_,
          max_depth);
    OnnxGraph graph;
    while (fields.next()) switch (fields.field()) {
        case 1:
          graph.nodes.push_back(node(part(fields).get_message(), depth));
          break;
        case 2:
          graph.name = text(fields);
          break;
        case 5:
          graph.constants.push_back(tensor(part(fields).get_message()));
          break;
        case 11:
          graph.inputs.push_back(value(part(fields).get_message()));
          break;
        case 12:
          graph.outputs.push_back(value(part(fields).get_message()));
          break;
      }
    return graph;
  }

  const std::string& file_;
  std::int64_t parts_ = 0;
};

std::string label(const OnnxNode& node) {
  return one_line(node.name.empty() && !node.outputs.empty() ? node.outputs.front() : node.name);
}

}  // namespace

OnnxModel parse_onnx(std::string_view bytes, const std::string& file) {
  check(!bytes.empty(), "[onnx] {}: the file is empty", file);
  return Parser(file).model(ProtoReader(bytes, file));
}

bool is_onnx(std::string_view bytes) {
  return bytes.size() > 2 && bytes[0] == '\x08' && (bytes.size() < 9 || bytes[8] != '{');
}

std::string order_problem(const OnnxGraph& graph) {
  std::set<std::string_view> known{""}, computed;
  for (const OnnxValue& input : graph.inputs) known.insert(input.name);
  for (const OnnxTensor& constant : graph.constants) known.insert(constant.name);
  for (const OnnxNode& node : graph.nodes)
    for (const std::string& output : node.outputs)
      if (!output.empty() && (known.contains(output) || !computed.insert(output).second))
        return fmt::format("the value '{}' has two definitions", one_line(output));
  for (const OnnxNode& node : graph.nodes)
    for (const std::string& input : node.inputs)
      if (!known.contains(input) && !computed.contains(input))
        return fmt::format("nothing computes '{}', an input of the node '{}'", one_line(input), label(node));
  for (const OnnxValue& output : graph.outputs)
    if (output.name.empty() || (!known.contains(output.name) && !computed.contains(output.name)))
      return fmt::format("nothing computes the output '{}'", one_line(output.name));
  // In the order of the file, as ONNX requires; what is left waits for each other or stands in the wrong
  // place.
  const OnnxNode* early = nullptr;
  for (const OnnxNode& node : graph.nodes) {
    const bool ready =
        std::ranges::all_of(node.inputs, [&](const auto& name) { return known.contains(name); });
    if (!ready && !early) early = &node;
    known.insert(node.outputs.begin(), node.outputs.end());
  }
  if (!early) return {};
  return fmt::format("the node '{}' needs a value that is computed after it: a cycle, or nodes out of order",
                     label(*early));
}

}  // namespace tandem
