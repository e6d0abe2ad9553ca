// Field numbers are those of onnx.proto.
#include "tandem/files/onnx/onnx_writer.h"

#include "tandem/core/check.h"
#include "tandem/files/onnx/protobuf.h"

namespace tandem {
namespace {

ProtoWriter message_of(const OnnxTensor& tensor) {
  ProtoWriter message;
  if (!tensor.dims.empty()) message.add_ints(1, tensor.dims);
  message.add_int(2, static_cast<std::int32_t>(tensor.type));
  message.add_bytes(8, tensor.name);
  message.add_bytes(9, tensor.data);
  return message;
}

ProtoWriter message_of(const OnnxAttribute& attribute) {
  ProtoWriter message;
  message.add_bytes(1, attribute.name);
  switch (attribute.kind) {
    case OnnxAttribute::Kind::number:
      message.add_float(2, attribute.number);
      break;
    case OnnxAttribute::Kind::integer:
      message.add_int(3, attribute.integer);
      break;
    case OnnxAttribute::Kind::text:
      message.add_bytes(4, attribute.text);
      break;
    case OnnxAttribute::Kind::tensor:
      expect(attribute.tensors.size() == 1);
      message.add_message(5, message_of(attribute.tensors.front()));
      break;
    case OnnxAttribute::Kind::numbers:
      message.add_floats(7, attribute.numbers);
      break;
    case OnnxAttribute::Kind::integers:
      message.add_ints(8, attribute.integers);
      break;
    case OnnxAttribute::Kind::graph:
      expect(false);  // nothing here makes them
  }
  message.add_int(20, static_cast<std::int32_t>(attribute.kind));
  return message;
}

ProtoWriter message_of(const OnnxNode& node) {
  ProtoWriter message;
  for (const std::string& input : node.inputs) message.add_bytes(1, input);
  for (const std::string& output : node.outputs) message.add_bytes(2, output);
  if (!node.name.empty()) message.add_bytes(3, node.name);
  message.add_bytes(4, node.op);
  for (const OnnxAttribute& attribute : node.attributes) message.add_message(5, message_of(attribute));
  if (!node.domain.empty()) message.add_bytes(7, node.domain);
  return message;
}

ProtoWriter message_of(const OnnxValue& value) {
  ProtoWriter shape;
  for (const OnnxSize& size : value.sizes) {
    ProtoWriter one;
    if (size.value >= 0)
      one.add_int(1, size.value);
    else if (!size.name.empty())
      one.add_bytes(2, size.name);
    shape.add_message(1, one);
  }
  ProtoWriter tensor, type, message;
  tensor.add_int(1, static_cast<std::int32_t>(value.type));
  if (value.has_shape) tensor.add_message(2, shape);
  type.add_message(1, tensor);
  message.add_bytes(1, value.name);
  message.add_message(2, type);
  return message;
}

ProtoWriter message_of(const OnnxGraph& graph) {
  ProtoWriter message;
  for (const OnnxNode& node : graph.nodes) message.add_message(1, message_of(node));
  message.add_bytes(2, graph.name);
  for (const OnnxTensor& constant : graph.constants) message.add_message(5, message_of(constant));
  for (const OnnxValue& input : graph.inputs) message.add_message(11, message_of(input));
  for (const OnnxValue& output : graph.outputs) message.add_message(12, message_of(output));
  return message;
}

}  // namespace

std::string to_onnx(const OnnxModel& model) {
  ProtoWriter message;
  message.add_int(1, model.ir_version);
  message.add_bytes(2, model.producer);
  message.add_bytes(3, model.producer_version);
  message.add_message(7, message_of(model.graph));
  for (const auto& [domain, version] : model.opsets) {
    ProtoWriter opset;
    opset.add_bytes(1, domain);
    opset.add_int(2, version);
    message.add_message(8, opset);
  }
  for (const auto& [key, value] : model.metadata) {
    ProtoWriter entry;
    entry.add_bytes(1, key);
    entry.add_bytes(2, value);
    message.add_message(14, entry);
  }
  check(message.bytes().size() < std::size_t{1} << 31, "[onnx] expected a file below 2^31 bytes, got {}",
        message.bytes().size());
  return message.take();
}

}  // namespace tandem
