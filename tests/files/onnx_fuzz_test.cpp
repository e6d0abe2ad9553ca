// Damaged and hostile ONNX files: whatever the bytes, they are read, described and run, or one line says why
// not. Most useful under asan.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <random>

#include "tandem/core/check.h"
#include "tandem/files/onnx/inspect_onnx.h"
#include "tandem/files/onnx/onnx_builder.h"
#include "tandem/files/onnx/onnx_reader.h"
#include "tandem/files/onnx/onnx_runner.h"
#include "tandem/files/onnx/onnx_writer.h"
#include "tandem/text/table.h"
#include "tests/files/test_files.h"

namespace tandem {
namespace {

using Integers = std::vector<std::int64_t>;

// A small network for 8-bit images of any size, with constants of a few elements: most bytes are structure.
OnnxModel seed_model() {
  OnnxBuilder b;
  const auto floats = [&](const std::string& name, OnnxDims dims) {
    const auto count = static_cast<std::size_t>(element_count(dims));
    return b.array(name, std::move(dims), std::vector<float>(count, 0.5f));
  };
  const OnnxBuilder::Attributes window{onnx_attribute("kernel_shape", Integers{2, 2}),
                                       onnx_attribute("strides", Integers{1, 1}),
                                       onnx_attribute("pads", Integers{1, 1, 0, 0})};
  const std::string pixels = b.add("Cast", {"image"}, {onnx_attribute("to", std::int64_t{1})});
  const std::string height = b.add_split("Split", {b.add("Shape", {"image"})}, 3,
                                         {onnx_attribute("num_outputs", std::int64_t{3})})[0];
  const std::string rows =
      b.add("Range", {b.integer(0, OnnxType::i64), b.add("Squeeze", {height, b.integers({0})}),
                      b.integer(1, OnnxType::i64)});
  const std::string positions = b.add(
      "Reshape", {b.add("Cast", {rows}, {onnx_attribute("to", std::int64_t{1})}), b.integers({-1, 1, 1})});
  const std::string faded = b.add("Where", {b.add("Less", {positions, b.number(2, OnnxType::f32)}), pixels,
                                            b.add("Mul", {pixels, b.number(0.5, OnnxType::f32)})});
  const std::string planes =
      b.add("Unsqueeze",
            {b.add("Transpose", {faded}, {onnx_attribute("perm", Integers{2, 0, 1})}), b.integers({0})});
  const std::string zero = b.integer(1, OnnxType::u8), scale = b.number(0.5, OnnxType::f32);
  const std::string rounded =
      b.add("DequantizeLinear", {b.add("QuantizeLinear", {planes, scale, zero}), scale, zero});
  const std::string kernel =
      b.add("DequantizeLinear",
            {b.array("kernel", {2, 3, 2, 2}, std::vector<std::int8_t>(24, 1)), floats("scales", {2}),
             b.array("zeros", {2}, std::vector<std::int8_t>(2))},
            {onnx_attribute("axis", std::int64_t{0})});
  const std::string conv =
      b.add("Conv", {rounded, kernel, floats("bias", {2})},
            {onnx_attribute("kernel_shape", Integers{2, 2}), onnx_attribute("strides", Integers{1, 2}),
             onnx_attribute("pads", Integers{1, 0, 1, 0}), onnx_attribute("dilations", Integers{1, 1}),
             onnx_attribute("group", std::int64_t{1})});
  const std::string pooled =
      b.add("Add", {b.add("MaxPool", {b.add("Relu", {conv})}, window), b.add("AveragePool", {conv}, window)});
  const std::string features = b.add("Reshape", {b.add("GlobalAveragePool", {pooled}), b.integers({1, 2})});
  const std::string both = b.add("Concat",
                                 {features, b.add("ReduceMax", {pooled, b.integers({2, 3})},
                                                  {onnx_attribute("keepdims", std::int64_t{0})})},
                                 {onnx_attribute("axis", std::int64_t{1})});
  const std::string hidden = b.add("MatMul", {both, floats("weight", {4, 3})});
  const std::string logits = b.add("Gemm", {hidden, floats("head", {2, 3}), floats("shift", {2})},
                                   {onnx_attribute("transB", std::int64_t{1})});
  b.add_named("Softmax", {logits}, "shares", {onnx_attribute("axis", std::int64_t{-1})});
  OnnxModel model{.producer = "test", .opsets = {{"", 18}}, .metadata = {{"key", "value"}}, .graph = b.graph};
  model.graph.inputs = {{.name = "image",
                         .type = OnnxType::u8,
                         .sizes = {{.name = "height"}, {.name = "width"}, {.value = 3}}}};
  model.graph.outputs = {{.name = "shares", .type = OnnxType::f32, .sizes = {{.value = 1}, {.value = 2}}}};
  return model;
}

std::map<std::string, OnnxTensor> image_input() {
  return {{"image", {.type = OnnxType::u8, .dims = {4, 5, 3}, .data = std::string(60, '\x40')}}};
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return engine_() % std::max<std::size_t>(n, 1); }
  template <class T>
  T& any(std::vector<T>& values) {
    return values[below(values.size())];
  }
  // Sizes that are plausible, wrong, or such that a product of two overflows.
  std::int64_t size() {
    constexpr auto max = std::numeric_limits<std::int64_t>::max(),
                   min = std::numeric_limits<std::int64_t>::min();
    constexpr std::int64_t sizes[] = {-1,
                                      0,
                                      1,
                                      2,
                                      3,
                                      5,
                                      -2,
                                      -(std::int64_t{1} << 31),
                                      std::int64_t{1} << 31,
                                      (std::int64_t{1} << 33) + 1,
                                      std::int64_t{1} << 62,
                                      max,
                                      min};
    return sizes[below(std::size(sizes))];
  }

 private:
  std::mt19937 engine_;
};

void change_bytes(std::string& bytes, Random& random) {
  for (std::size_t changes = 1 + random.below(4); changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = random.below(bytes.size());
    const auto value = static_cast<char>(random.below(3) == 0 ? 0xff * random.below(2) : random.below(256));
    switch (random.below(8)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.insert(at, random.below(12), value);  // the length of a message is then wrong
        break;
      case 2:
        bytes.erase(at, random.below(12));
        break;
      case 3:
        bytes.insert(at, bytes.substr(random.below(bytes.size()), random.below(64)));
        break;
      default:
        bytes[at] = value;
    }
  }
}

std::string any_value(OnnxGraph& graph, Random& random) {
  switch (random.below(3)) {
    case 0:
      return random.any(graph.constants).name;
    case 1:
      return random.any(graph.nodes).outputs.empty() ? "" : graph.nodes.front().outputs.front();
    default: {  // perhaps of a later node: a cycle
      const OnnxNode& node = random.any(graph.nodes);
      return node.outputs.empty() ? "image" : node.outputs.front();
    }
  }
}

void change_node(OnnxGraph& graph, Random& random) {
  OnnxNode& node = random.any(graph.nodes);
  switch (random.below(6)) {
    case 0:
      node.op = random.any(graph.nodes).op;
      break;
    case 1:
      if (!node.inputs.empty())
        random.any(node.inputs) = random.below(6) == 0 ? "" : any_value(graph, random);
      break;
    case 2:
      node.inputs.resize(random.below(4), any_value(graph, random));
      break;
    case 3:
      node.outputs.resize(random.below(4), "more");
      break;
    case 4:
      if (!node.attributes.empty()) node.attributes.erase(node.attributes.begin());
      break;
    default:
      node.attributes = random.any(graph.nodes).attributes;
  }
}

void change_attribute(OnnxGraph& graph, Random& random) {
  OnnxNode& node = random.any(graph.nodes);
  if (node.attributes.empty()) return;
  OnnxAttribute& attribute = random.any(node.attributes);
  attribute.integer = random.size();
  if (!attribute.integers.empty()) random.any(attribute.integers) = random.size();
  if (random.below(8) == 0) attribute.integers.resize(random.below(6), random.size());
  if (random.below(8) == 0)
    attribute.kind = attribute.kind == OnnxAttribute::Kind::integer ? OnnxAttribute::Kind::integers
                                                                    : OnnxAttribute::Kind::integer;
}

void change_constant(OnnxGraph& graph, Random& random) {
  OnnxTensor& constant = random.any(graph.constants);
  const std::int64_t size = random.size();
  switch (random.below(5)) {
    case 0:
      if (!constant.dims.empty()) random.any(constant.dims) = size;
      break;
    case 1:
      constant.dims.insert(constant.dims.begin(), 1);
      break;
    case 2:
      if (constant.dims.size() > 1) std::swap(constant.dims.front(), constant.dims.back());
      break;
    case 3:
      constant.type = static_cast<OnnxType>(random.below(18));
      break;
    default:
      if (constant.type == OnnxType::i64 && !constant.data.empty())
        std::copy_n(
            reinterpret_cast<const char*>(&size), 8,
            constant.data.begin() + static_cast<std::ptrdiff_t>(8 * random.below(constant.data.size() / 8)));
      else
        constant.data.resize(random.below(64));
  }
}

void expect_one_line(const Error& error) {
  const std::string_view text = error.what();
  EXPECT_TRUE(text.starts_with("[onnx] ")) << text;
  EXPECT_EQ(text.find('\n'), text.npos) << text;
}

std::int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{1024} * usage.ru_maxrss;
}

constexpr std::int64_t max_memory = std::int64_t{1} << 30;

TEST(OnnxFuzz, Seed_IsReadAndRun) {
  const auto outputs = run_onnx(parse_onnx(to_onnx(seed_model()), "f.onnx"), image_input());
  const OnnxTensor& shares = outputs.at("shares");
  EXPECT_EQ(shares.dims, (OnnxDims{1, 2}));
  EXPECT_EQ(shares.values<float>()[0], 0.5f);
}

TEST(OnnxFuzz, ChangedBytes_AreDescribedOrAnError) {
  const TempFolder folder;
  const std::string whole = to_onnx(seed_model());
  const std::int64_t before = peak_bytes();
  Random random(12345);
  int described = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = whole;
    change_bytes(bytes, random);
    try {
      const OnnxModel model = parse_onnx(bytes, "f.onnx");
      order_problem(model.graph);
      if (round % 16 == 0) {
        put_bytes(folder / "f.onnx", bytes);
        const OnnxFacts facts = inspect_onnx(folder / "f.onnx");
        EXPECT_FALSE(to_text(facts, {}).empty());
        EXPECT_FALSE(to_json_text(facts).empty());
      }
      ++described;
    } catch (const Error& error) {
      expect_one_line(error);
      ++refused;
    }
  }
  EXPECT_GT(described, 100);
  EXPECT_GT(refused, 1000);
  EXPECT_LT(peak_bytes() - before, max_memory);
}

TEST(OnnxFuzz, ChangedGraphs_AreRunOrAnError) {
  const OnnxModel seed = seed_model();
  const std::int64_t before = peak_bytes();
  Random random(54321);
  int run = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    OnnxModel model = seed;
    for (std::size_t changes = 1 + random.below(3); changes > 0; --changes) {
      const std::size_t kind = random.below(7);
      if (kind < 3)
        change_node(model.graph, random);
      else if (kind < 5)
        change_attribute(model.graph, random);
      else
        change_constant(model.graph, random);
    }
    try {
      model = parse_onnx(to_onnx(model), "f.onnx");
      if (round % 16 == 0) random.any(model.graph.constants).external = "../weights.bin";
      run_onnx(model, image_input());
      ++run;
    } catch (const Error& error) {
      expect_one_line(error);
      ++refused;
    }
  }
  EXPECT_GT(run, 150);
  EXPECT_GT(refused, 1000);
  EXPECT_LT(peak_bytes() - before, max_memory);
}

}  // namespace
}  // namespace tandem
