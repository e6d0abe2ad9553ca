// The wire format, the reader of ONNX files with damaged and hostile ones, and what inspect says of them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tandem/files/onnx/inspect_onnx.h"
#include "tandem/files/onnx/onnx_builder.h"
#include "tandem/files/onnx/onnx_reader.h"
#include "tandem/files/onnx/onnx_runner.h"
#include "tandem/files/onnx/onnx_writer.h"
#include "tandem/files/onnx/protobuf.h"
#include "tandem/files/small_floats.h"
#include "tandem/text/table.h"
#include "tests/core/error_text.h"
#include "tests/files/test_files.h"

namespace tandem {
namespace {

// y = relu(x + 1) of f32 [n, 2].
OnnxModel small_model() {
  OnnxBuilder builder;
  const std::string sum = builder.add("Add", {"x", builder.array("one", {2}, std::vector<float>{1, 1})});
  builder.add_named("Relu", {sum}, "y");
  OnnxModel model{
      .producer = "test", .opsets = {{"", 18}}, .metadata = {{"key", "value"}}, .graph = builder.graph};
  model.graph.inputs = {{.name = "x", .type = OnnxType::f32, .sizes = {{.name = "n"}, {.value = 2}}}};
  model.graph.outputs = {{.name = "y", .type = OnnxType::f32, .sizes = {{.name = "n"}, {.value = 2}}}};
  return model;
}

// A graph inside a model with one opset, from its own bytes.
std::string model_bytes(const ProtoWriter& graph) {
  ProtoWriter model;
  model.add_int(1, 8);
  model.add_message(7, graph);
  return model.take();
}

// Empty if there is no error.
std::string parse_error(const std::string& bytes) {
  try {
    parse_onnx(bytes, "f.onnx");
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << error.what();
    return error.what();
  }
}

TEST(Protobuf, Fields_RoundTrip) {
  ProtoWriter inner;
  inner.add_bytes(1, "name");
  ProtoWriter writer;
  writer.add_int(1, -1);
  writer.add_int(2, 300);
  writer.add_float(3, 1.5f);
  writer.add_message(4, inner);
  writer.add_ints(5, {0, 127, 128, std::numeric_limits<std::int64_t>::max(), -7});
  writer.add_floats(6, {0.25f, -3});
  writer.add_int(100, 9);                                   // a number of two bytes
  EXPECT_EQ(writer.bytes().substr(11, 3), "\x10\xac\x02");  // 300 as in the documentation of the format
  ProtoReader reader(writer.bytes(), "f");
  std::vector<std::int64_t> ints;
  std::vector<float> floats;
  for (int expected : {1, 2, 3, 4, 5, 6, 100}) {
    ASSERT_TRUE(reader.next());
    ASSERT_EQ(reader.field(), expected);
    if (expected == 1) {
      EXPECT_EQ(reader.get_int(), -1);
    }
    if (expected == 2) {
      EXPECT_EQ(reader.get_int(), 300);
    }
    if (expected == 3) {
      EXPECT_EQ(reader.get_float(), 1.5f);
    }
    if (expected == 4) {
      ProtoReader message = reader.get_message();
      ASSERT_TRUE(message.next());
      EXPECT_EQ(message.get_bytes(), "name");
      EXPECT_FALSE(message.next());
    }
    if (expected == 5) reader.append_ints(ints, 5);
    if (expected == 6) reader.append_floats(floats, 2);
  }
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(ints, (std::vector<std::int64_t>{0, 127, 128, std::numeric_limits<std::int64_t>::max(), -7}));
  EXPECT_EQ(floats, (std::vector<float>{0.25f, -3}));
}

TEST(Protobuf, DamagedBytes_AreErrors) {
  const auto next_error = [](std::string_view bytes) {
    return error_text([&] { ProtoReader(bytes, "f").next(); });
  };
  EXPECT_EQ(next_error("\x08"), "[onnx] f: the file is truncated");
  EXPECT_EQ(next_error(std::string("\x0a\x05", 2) + "abc"),
            "[onnx] f: the file is truncated: a field of 5 bytes, 3 are left");
  EXPECT_NE(next_error("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f").find("truncated"), std::string::npos);
  EXPECT_NE(next_error("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").find("64 bits"),
            std::string::npos);
  EXPECT_NE(next_error(std::string_view("\x00\x01", 2)).find("number 0"), std::string::npos);
  EXPECT_NE(next_error("\x0b").find("wire type 3"), std::string::npos);  // groups
  ProtoWriter writer;
  writer.add_int(1, 1);
  ProtoReader reader(writer.bytes(), "f");
  reader.next();
  EXPECT_NE(error_text([&] { reader.get_bytes(); }).find("expected wire type 2"), std::string::npos);
  ProtoWriter list;
  list.add_ints(1, {1, 2, 3});
  ProtoReader values(list.bytes(), "f");
  values.next();
  std::vector<std::int64_t> to;
  EXPECT_NE(error_text([&] { values.append_ints(to, 2); }).find("at most 2 values"), std::string::npos);
}

TEST(Half, Conversion_IsToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_half(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(to_half(value), bits) << value;
  }
  EXPECT_EQ(from_half(0x3c00), 1.0f);
  EXPECT_EQ(from_half(0x0001), 0x1p-24f);
  EXPECT_EQ(from_half(0x7bff), 65504.0f);
  EXPECT_EQ(to_half(1 + 0x1p-11f), 0x3c00);      // half way, to even
  EXPECT_EQ(to_half(1 + 3 * 0x1p-11f), 0x3c02);  // half way, to even
  EXPECT_EQ(to_half(1 + 0x1p-11f + 0x1p-20f), 0x3c01);
  EXPECT_EQ(to_half(65520.0f), 0x7c00);
  EXPECT_EQ(to_half(0x1p-25f), 0);
  EXPECT_TRUE(std::isnan(from_half(to_half(std::nanf("")))));
}

TEST(Onnx, Model_RoundTrips) {
  const OnnxModel model = small_model();
  const std::string bytes = to_onnx(model);
  EXPECT_TRUE(is_onnx(bytes));
  const OnnxModel read = parse_onnx(bytes, "f.onnx");
  EXPECT_EQ(to_onnx(read), bytes);
  EXPECT_EQ(read.opsets, model.opsets);
  EXPECT_EQ(read.metadata, model.metadata);
  ASSERT_EQ(read.graph.nodes.size(), 2u);
  EXPECT_EQ(read.graph.nodes[0].op, "Add");
  EXPECT_EQ(read.graph.inputs[0].to_string(), "f32 [n, 2]");
  const std::vector<float> x{-3, 0, 5, -1};
  const auto y =
      run_onnx(read,
               {{"x", {.dims = {2, 2}, .data = std::string(reinterpret_cast<const char*>(x.data()), 16)}}})
          .at("y");
  EXPECT_EQ(y.dims, (OnnxDims{2, 2}));
  EXPECT_EQ((std::vector<float>(y.values<float>(), y.values<float>() + 4)), (std::vector<float>{0, 1, 6, 0}));
}

TEST(Onnx, EveryTruncation_IsAnError) {
  const std::string bytes = to_onnx(small_model());
  std::size_t errors = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size)
    errors += parse_error(bytes.substr(0, size)).starts_with("[onnx] f.onnx: ") ? 1 : 0;
  // Metadata and opset come after the graph: a file cut exactly between them is whole.
  EXPECT_GE(errors + 3, bytes.size());
}

TEST(Onnx, EveryChangedByte_IsReadOrAnError) {
  const std::string bytes = to_onnx(small_model());
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(value);
      try {
        const OnnxModel model = parse_onnx(changed, "f.onnx");
        run_onnx(model, {{"x", {.dims = {1, 2}, .data = std::string(8, '\0')}}});
      } catch (const Error& error) {
        ASSERT_TRUE(std::string_view(error.what()).starts_with("[onnx] ")) << error.what();
      }
    }
}

TEST(Onnx, Constants_MustFitTheirSizes) {
  const auto with_constant = [](std::vector<std::int64_t> dims, std::string data) {
    ProtoWriter tensor, graph;
    tensor.add_ints(1, dims);
    tensor.add_int(2, 1);
    tensor.add_bytes(8, "w");
    tensor.add_bytes(9, data);
    graph.add_message(5, tensor);
    return parse_error(model_bytes(graph));
  };
  EXPECT_EQ(with_constant({2}, std::string(8, '\0')), "");
  EXPECT_EQ(with_constant({std::int64_t{1} << 31, std::int64_t{1} << 31}, "12345678"),
            "[onnx] f.onnx: the constant 'w' of f32 [2147483648, 2147483648] has 8 bytes of data");
  EXPECT_NE(with_constant({std::int64_t{1} << 62, 8}, "1").find("not a number of elements"),
            std::string::npos);
  EXPECT_NE(with_constant({-1}, "1").find("not a number of elements"), std::string::npos);
  EXPECT_NE(with_constant(std::vector<std::int64_t>(65, 1), "1234").find("at most 64 values"),
            std::string::npos);
}

TEST(Onnx, TypedData_IsRead) {
  ProtoWriter tensor, graph;
  tensor.add_ints(1, {2});
  tensor.add_int(2, 6);
  tensor.add_ints(5, {7, -8});
  graph.add_message(5, tensor);
  const OnnxModel model = parse_onnx(model_bytes(graph), "f");
  ASSERT_EQ(model.graph.constants.size(), 1u);
  EXPECT_EQ(model.graph.constants[0].values<std::int32_t>()[0], 7);
  EXPECT_EQ(model.graph.constants[0].values<std::int32_t>()[1], -8);
}

TEST(Onnx, DeepAndWideFiles_AreRefused) {
  ProtoWriter graph;
  for (int depth = 0; depth < 20; ++depth) {
    ProtoWriter attribute, node, outer;
    attribute.add_bytes(1, "body");
    attribute.add_message(6, graph);
    node.add_bytes(4, "If");
    node.add_message(5, attribute);
    outer.add_message(1, node);
    graph = outer;
  }
  EXPECT_EQ(parse_error(model_bytes(graph)),
            "[onnx] f.onnx: expected graphs at most 16 deep inside each other");
  std::string nodes;  // two bytes each
  for (int i = 0; i < (1 << 21) + 1; ++i) nodes += std::string_view("\x0a\x00", 2);
  ProtoWriter model;
  model.add_int(1, 8);
  model.add_bytes(7, nodes);
  EXPECT_NE(parse_error(model.take()).find("at most 2097152 nodes"), std::string::npos);
}

TEST(Onnx, OtherFiles_AreErrors) {
  EXPECT_EQ(parse_error(""), "[onnx] f.onnx: the file is empty");
  EXPECT_NE(parse_error("hello, this is text"), "");
  ProtoWriter model;
  model.add_int(1, 8);
  EXPECT_EQ(parse_error(model.take()), "[onnx] f.onnx: not an ONNX file: it has no graph");
  EXPECT_FALSE(is_onnx(std::string("\x08\0\0\0\0\0\0\0{", 9)));  // safetensors with a short header
}

TEST(Onnx, CyclesAndMissingValues_AreNamed) {
  OnnxModel model = small_model();
  model.graph.nodes[0].inputs[0] = "y";
  EXPECT_EQ(order_problem(model.graph),
            "the node 'add_1' needs a value that is computed after it: a cycle, or nodes out of order");
  EXPECT_EQ(error_text([&] { run_onnx(model, {}); }), "[onnx] " + order_problem(model.graph));
  model.graph.nodes[0].inputs[0] = "nowhere";
  EXPECT_EQ(order_problem(model.graph), "nothing computes 'nowhere', an input of the node 'add_1'");
  model = small_model();
  model.graph.nodes[1].outputs[0] = "x";
  EXPECT_EQ(order_problem(model.graph), "the value 'x' has two definitions");
  model = small_model();
  model.graph.outputs[0].name = "z";
  EXPECT_EQ(order_problem(model.graph), "nothing computes the output 'z'");
}

TEST(Onnx, Run_RefusesWhatItDoesNotKnow) {
  OnnxModel model = small_model();
  model.graph.nodes[1].op = "Launch";
  EXPECT_EQ(error_text([&] { run_onnx(model, {}); }), "[onnx] the operator 'Launch' is not known");
  model.graph.nodes[1] = small_model().graph.nodes[1];
  model.graph.nodes[1].domain = "com.example";
  EXPECT_EQ(error_text([&] { run_onnx(model, {}); }), "[onnx] the operator 'Relu' is not known");
  model = small_model();
  EXPECT_EQ(error_text([&] { run_onnx(model, {}); }), "[onnx] expected the input 'x', got none");
  EXPECT_EQ(error_text([&] {
              run_onnx(model, {{"x", {.dims = {1, 3}, .data = std::string(12, '\0')}}});
            }),
            "[onnx] expected f32 [n, 2] as the input 'x', got f32 [1, 3]");
  model.graph.constants[0].external = "weights.bin";
  EXPECT_NE(error_text([&] { run_onnx(model, {}); }).find("not in the file"), std::string::npos);
}

TEST(InspectOnnx, File_IsDescribed) {
  const TempFolder folder;
  OnnxModel model = small_model();
  model.graph.nodes[1].op = "Launch";
  model.graph.nodes[1].domain = "com.example";
  put_bytes(folder / "m.onnx", to_onnx(model));
  const OnnxFacts facts = inspect_onnx(folder / "m.onnx");
  EXPECT_EQ(facts.problem, "");
  EXPECT_EQ(facts.parameters, 2);
  const std::string text = to_text(facts, {});
  for (const char* part : {"ONNX, opset 18", "2 parameters, written by test", "input x", "f32 [n, 2]",
                           "com.example.Launch      1  does not know it", "key       value"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const auto json = nlohmann::json::parse(to_json_text(facts));
  EXPECT_EQ(json["opsets"][""], 18);
  EXPECT_EQ(json["operators"][1]["known"], false);
  EXPECT_EQ(json["inputs"]["x"], "f32 [n, 2]");
  EXPECT_TRUE(is_onnx_file(folder / "m.onnx"));
}

TEST(InspectOnnx, ExternalData_IsNamedAndNotOpened) {
  const TempFolder folder;
  ProtoWriter entry, tensor, graph;
  entry.add_bytes(1, "location");
  entry.add_bytes(2, "../../secret\nfile.bin");
  tensor.add_ints(1, {std::int64_t{1} << 31, 4});
  tensor.add_int(2, 1);
  tensor.add_bytes(8, "w");
  tensor.add_message(13, entry);
  tensor.add_int(14, 1);
  graph.add_message(5, tensor);
  put_bytes(folder / "m.onnx", model_bytes(graph));
  const OnnxFacts facts = inspect_onnx(folder / "m.onnx");
  ASSERT_EQ(facts.external.size(), 1u);
  EXPECT_EQ(facts.external[0].find('\n'), std::string::npos);
  EXPECT_EQ(facts.parameters, std::int64_t{1} << 33);
  EXPECT_NE(to_text(facts, {}).find("Data in other files, which were not opened: ../../secret"),
            std::string::npos);
}

}  // namespace
}  // namespace tandem
