// The operators that verify exported files: small cases with results by hand or from another formula.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tandem/files/onnx/onnx_builder.h"
#include "tandem/files/onnx/onnx_operators.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

template <class T>
OnnxTensor tensor(OnnxType type, OnnxDims dims, const std::vector<T>& values) {
  OnnxTensor made = make_onnx_tensor(type, std::move(dims));
  EXPECT_EQ(made.count(), std::ssize(values));
  if (!values.empty()) std::memcpy(made.data.data(), values.data(), made.data.size());
  return made;
}
OnnxTensor f32(OnnxDims dims, const std::vector<float>& values) {
  return tensor(OnnxType::f32, std::move(dims), values);
}
OnnxTensor f64(OnnxDims dims, const std::vector<double>& values) {
  return tensor(OnnxType::f64, std::move(dims), values);
}
OnnxTensor i32(OnnxDims dims, const std::vector<std::int32_t>& values) {
  return tensor(OnnxType::i32, std::move(dims), values);
}
OnnxTensor i64(const std::vector<std::int64_t>& values) {
  return tensor(OnnxType::i64, {std::ssize(values)}, values);
}
OnnxTensor u8(OnnxDims dims, const std::vector<std::uint8_t>& values) {
  return tensor(OnnxType::u8, std::move(dims), values);
}

OnnxTensors compute(const std::string& op, const OnnxTensors& inputs,
                    std::vector<OnnxAttribute> attributes = {}, std::size_t outputs = 1) {
  OnnxNode node{.op = op, .attributes = std::move(attributes)};
  node.outputs.resize(outputs, "y");
  OnnxCall call{.node = node, .inputs = {}};
  for (const OnnxTensor& input : inputs) call.inputs.push_back(&input);
  const OnnxOperator* const found = find_onnx_operator(op);
  EXPECT_NE(found, nullptr) << op;
  return found->compute(call);
}

template <class T>
std::vector<T> values(const OnnxTensor& tensor) {
  return {tensor.values<T>(), tensor.values<T>() + tensor.count()};
}
using Floats = std::vector<float>;

void expect_near(const OnnxTensor& found, const Floats& expected) {
  ASSERT_EQ(found.count(), std::ssize(expected));
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found.values<float>()[i], expected[i], 1e-6) << i;
}

std::int64_t type_number(OnnxType type) {
  return static_cast<std::int32_t>(type);
}

TEST(OnnxOperators, Arithmetic_Broadcasts) {
  const OnnxTensor a = f32({2, 3}, {1, 2, 3, 4, 5, 6}), row = f32({3}, {10, 20, 30}),
                   column = f32({2, 1}, {1, 2});
  EXPECT_EQ(values<float>(compute("Add", {a, row})[0]), (Floats{11, 22, 33, 14, 25, 36}));
  EXPECT_EQ(values<float>(compute("Sub", {column, a})[0]), (Floats{0, -1, -2, -2, -3, -4}));
  const OnnxTensor product = compute("Mul", {row, column})[0];
  EXPECT_EQ(product.dims, (OnnxDims{2, 3}));
  EXPECT_EQ(values<float>(product), (Floats{10, 20, 30, 20, 40, 60}));
  EXPECT_EQ(values<float>(compute("Max", {a, f32({}, {4})})[0]), (Floats{4, 4, 4, 4, 5, 6}));
  EXPECT_EQ(values<float>(compute("Min", {a, f32({}, {4}), f32({}, {2})})[0]), (Floats{1, 2, 2, 2, 2, 2}));
  EXPECT_EQ(values<float>(compute("Pow", {a, f32({}, {2})})[0]), (Floats{1, 4, 9, 16, 25, 36}));
  EXPECT_EQ(values<std::int32_t>(compute("Div", {i32({3}, {7, -7, 9}), i32({}, {2})})[0]),
            (std::vector<std::int32_t>{3, -3, 4}));
  EXPECT_NE(error_text([&] { compute("Div", {i32({1}, {1}), i32({}, {0})}); }), "");
  EXPECT_NE(error_text([&] { compute("Add", {a, f32({2}, {1, 2})}); }).find("broadcast"), std::string::npos);
  EXPECT_NE(error_text([&] { compute("Add", {a, i32({}, {1})}); }).find("one type"), std::string::npos);
  EXPECT_NE(error_text([&] { compute("Add", {a}); }).find("at least 2 inputs"), std::string::npos);
}

TEST(OnnxOperators, Comparisons_GiveBool) {
  const OnnxTensor a = f64({3}, {1, 2, 3}), b = f64({}, {2});
  const OnnxTensor less = compute("Less", {a, b})[0], not_less = compute("GreaterOrEqual", {a, b})[0];
  EXPECT_EQ(less.type, OnnxType::boolean);
  EXPECT_EQ(values<std::uint8_t>(less), (std::vector<std::uint8_t>{1, 0, 0}));
  EXPECT_EQ(values<std::uint8_t>(not_less), (std::vector<std::uint8_t>{0, 1, 1}));
  EXPECT_EQ(values<std::uint8_t>(compute("Or", {less, compute("Less", {b, a})[0]})[0]),
            (std::vector<std::uint8_t>{1, 0, 1}));
  EXPECT_EQ(values<double>(compute("Where", {less, a, f64({}, {-1})})[0]), (std::vector<double>{1, -1, -1}));
}

TEST(OnnxOperators, Functions_FollowTheirFormulas) {
  const Floats x{-4, -1.25f, 0, 0.5f, 3.5f};
  const OnnxTensor input = f32({5}, x);
  const auto expect_function = [&](const char* op, auto f, std::vector<OnnxAttribute> attributes = {}) {
    Floats expected;
    for (const float value : x) expected.push_back(static_cast<float>(f(static_cast<double>(value))));
    SCOPED_TRACE(op);
    expect_near(compute(op, {input}, std::move(attributes))[0], expected);
  };
  expect_function("Abs", [](double v) { return std::abs(v); });
  expect_function("Sign", [](double v) { return v > 0 ? 1 : v < 0 ? -1 : 0; });
  expect_function("Floor", [](double v) { return std::floor(v); });
  expect_function("Round", [](double v) { return v == 0.5 ? 0 : v == 3.5 ? 4 : std::round(v); });
  expect_function("Exp", [](double v) { return std::exp(v); });
  expect_function("Erf", [](double v) { return std::erf(v); });
  expect_function("Relu", [](double v) { return std::max(v, 0.0); });
  expect_function("Sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); });
  expect_function("Tanh", [](double v) { return std::tanh(v); });
  expect_function("HardSwish", [](double v) { return v * std::clamp(v + 3, 0.0, 6.0) / 6; });
  expect_function("HardSigmoid", [](double v) { return std::clamp(0.2 * v + 0.5, 0.0, 1.0); });
  expect_function("HardSigmoid", [](double v) { return std::clamp(v + 3, 0.0, 6.0) / 6; },
                  {onnx_attribute("alpha", 1.0f / 6), onnx_attribute("beta", 0.5f)});
  expect_near(compute("Log", {f32({2}, {1, 2.5f})})[0], {0, std::log(2.5f)});
  expect_near(compute("Sqrt", {f32({2}, {9, 2})})[0], {3, std::sqrt(2.0f)});
}

TEST(OnnxOperators, Reductions_KeepOrDropAxes) {
  const OnnxTensor x = f32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const OnnxTensor kept = compute("ReduceSum", {x, i64({1})})[0];
  EXPECT_EQ(kept.dims, (OnnxDims{2, 1, 2}));
  EXPECT_EQ(values<float>(kept), (Floats{4, 6, 12, 14}));
  const OnnxTensor dropped =
      compute("ReduceMax", {x, i64({0, -1})}, {onnx_attribute("keepdims", std::int64_t{0})})[0];
  EXPECT_EQ(dropped.dims, (OnnxDims{2}));
  EXPECT_EQ(values<float>(dropped), (Floats{6, 8}));
  EXPECT_EQ(values<float>(compute("ReduceSum", {x})[0]), (Floats{36}));
  EXPECT_NE(error_text([&] { compute("ReduceSum", {x, i64({3})}); }).find("axis"), std::string::npos);
  const OnnxTensor rows = compute("Softmax", {f32({2, 2}, {0, std::log(3.0f), 1000, 1000})})[0];
  expect_near(rows, {0.25f, 0.75f, 0.5f, 0.5f});
}

TEST(OnnxOperators, Shapes_AreMoved) {
  const OnnxTensor x = i32({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values<std::int64_t>(compute("Shape", {x})[0]), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(values<std::int64_t>(compute(
                "Shape", {x},
                {onnx_attribute("start", std::int64_t{-1}), onnx_attribute("end", std::int64_t{2})})[0]),
            (std::vector<std::int64_t>{3}));
  EXPECT_EQ(compute("Reshape", {x, i64({0, -1, 1})})[0].dims, (OnnxDims{2, 3, 1}));
  EXPECT_NE(error_text([&] { compute("Reshape", {x, i64({4, -1})}); }).find("6 elements"), std::string::npos);
  const OnnxTensor turned = compute("Transpose", {x})[0];
  EXPECT_EQ(turned.dims, (OnnxDims{3, 2}));
  EXPECT_EQ(values<std::int32_t>(turned), (std::vector<std::int32_t>{1, 4, 2, 5, 3, 6}));
  const OnnxTensor cube = f32({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values<float>(compute("Transpose", {cube},
                                  {onnx_attribute("perm", std::vector<std::int64_t>{2, 0, 1})})[0]),
            (Floats{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(compute("Squeeze", {cube})[0].dims, (OnnxDims{2, 3}));
  EXPECT_EQ(compute("Unsqueeze", {x, i64({0, -1})})[0].dims, (OnnxDims{1, 2, 3, 1}));
  const OnnxTensor joined = compute("Concat", {x, x}, {onnx_attribute("axis", std::int64_t{1})})[0];
  EXPECT_EQ(values<std::int32_t>(joined), (std::vector<std::int32_t>{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
  const OnnxTensors parts = compute("Split", {x}, {onnx_attribute("axis", std::int64_t{1})}, 3);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(values<std::int32_t>(parts[1]), (std::vector<std::int32_t>{2, 5}));
  EXPECT_EQ(values<double>(compute("Range", {f64({}, {0}), f64({}, {2.5}), f64({}, {1})})[0]),
            (std::vector<double>{0, 1, 2}));
  EXPECT_NE(error_text([&] { compute("Range", {f64({}, {0}), f64({}, {1}), f64({}, {0})}); }), "");
  EXPECT_NE(error_text([&] { compute("Range", {f64({}, {0}), f64({}, {1e18}), f64({}, {1})}); }), "");
  EXPECT_EQ(compute("Identity", {x})[0].data, x.data);
}

TEST(OnnxOperators, Cast_ConvertsTowardZeroAndHalves) {
  const auto cast = [](const OnnxTensor& x, OnnxType to) {
    return compute("Cast", {x}, {onnx_attribute("to", type_number(to))})[0];
  };
  EXPECT_EQ(values<std::int32_t>(cast(f32({3}, {-1.9f, 2.9f, 1e20f}), OnnxType::i32)),
            (std::vector<std::int32_t>{-1, 2, std::numeric_limits<std::int32_t>::max()}));
  EXPECT_EQ(values<std::uint8_t>(cast(f64({3}, {255, -3, 7.5}), OnnxType::u8)),
            (std::vector<std::uint8_t>{255, 0, 7}));
  EXPECT_EQ(values<float>(cast(u8({2}, {0, 200}), OnnxType::f32)), (Floats{0, 200}));
  const std::vector<std::uint16_t> halves{0x3c00, 0xc000}, brains{0x3f80, 0xc000};
  EXPECT_EQ(values<float>(cast(tensor(OnnxType::f16, {2}, halves), OnnxType::f32)), (Floats{1, -2}));
  EXPECT_EQ(values<float>(cast(tensor(OnnxType::bf16, {2}, brains), OnnxType::f32)), (Floats{1, -2}));
  EXPECT_NE(error_text([&] { cast(u8({1}, {0}), OnnxType::text); }), "");
  // To nearest, ties to even: 1 + 2^-8 is between 1 and 1 + 2^-7.
  const OnnxTensor rounded = cast(f32({3}, {1 + 0x1p-8f, 1 + 0x1.8p-8f, -3.0f}), OnnxType::bf16);
  EXPECT_EQ(values<float>(cast(rounded, OnnxType::f32)), (Floats{1, 1 + 0x1p-7f, -3}));
  EXPECT_NE(error_text([&] { cast(u8({1}, {0}), OnnxType::bf16); }).find("expected f32 to bf16"),
            std::string::npos);
}

OnnxTensor i8(OnnxDims dims, const std::vector<std::int8_t>& values) {
  return tensor(OnnxType::i8, std::move(dims), values);
}

TEST(OnnxOperators, Quantization_RoundsToEvenAndClamps) {
  const OnnxTensor x = f32({7}, {-1, -0.25f, 0.25f, 0.75f, 1.2f, 200, std::nanf("")});
  EXPECT_EQ(values<std::uint8_t>(compute("QuantizeLinear", {x, f32({}, {0.5f}), u8({}, {3})})[0]),
            (std::vector<std::uint8_t>{1, 3, 3, 5, 5, 255, 0}));
  EXPECT_EQ(values<std::int8_t>(compute("QuantizeLinear", {x, f32({}, {0.5f}), i8({}, {-3})})[0]),
            (std::vector<std::int8_t>{-5, -3, -3, -1, -1, 127, -128}));
  EXPECT_EQ(compute("QuantizeLinear", {x, f32({}, {0.5f})})[0].type, OnnxType::u8);
  EXPECT_EQ(
      values<float>(compute("DequantizeLinear", {u8({3}, {0, 3, 255}), f32({}, {0.5f}), u8({}, {3})})[0]),
      (Floats{-1.5f, 0, 126}));
  // One scale per row, then one per column.
  const OnnxTensor levels = i8({2, 3}, {-128, 0, 127, 1, 2, 3});
  EXPECT_EQ(values<float>(compute("DequantizeLinear", {levels, f32({2}, {1, 0.5f}), i8({2}, {0, 1})},
                                  {onnx_attribute("axis", std::int64_t{0})})[0]),
            (Floats{-128, 0, 127, 0, 0.5f, 1}));
  EXPECT_EQ(values<float>(compute("DequantizeLinear", {levels, f32({3}, {1, 2, 4})})[0]),
            (Floats{-128, 0, 508, 1, 4, 12}));
  EXPECT_EQ(values<std::uint8_t>(compute("QuantizeLinear", {f32({1, 2}, {8, 8}), f32({2}, {1, 4})})[0]),
            (std::vector<std::uint8_t>{8, 2}));
}

TEST(OnnxOperators, WrongQuantization_IsOneLine) {
  const OnnxTensor x = i8({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto expect_refused = [&](const OnnxTensors& inputs, const std::string& text,
                                  std::vector<OnnxAttribute> attributes = {}) {
    EXPECT_EQ(error_text([&] { compute("DequantizeLinear", inputs, attributes); }),
              "[onnx] DequantizeLinear: " + text);
  };
  const float infinity = std::numeric_limits<float>::infinity();
  expect_refused({x, f32({}, {0})}, "expected positive scales, got 0");
  expect_refused({x, f32({3}, {1, -2, 1})}, "expected positive scales, got -2");
  expect_refused({x, f32({}, {infinity})}, "expected positive scales, got inf");
  expect_refused({x, f32({}, {std::nanf("")})}, "expected positive scales, got nan");
  expect_refused({x, f32({0}, {})}, "expected scales, got none");
  expect_refused({x, f64({}, {1})}, "expected one scale, or one per index of an axis, in f32, got f64 []");
  expect_refused({x, f32({1, 1}, {1})},
                 "expected one scale, or one per index of an axis, in f32, got f32 [1, 1]");
  expect_refused({x, f32({2}, {1, 1})}, "expected 3 scales for axis 1 of [2, 3], got 2");
  expect_refused({x, f32({2}, {1, 1})}, "expected an axis from -2 to 1, got 2",
                 {onnx_attribute("axis", std::int64_t{2})});
  expect_refused({x, f32({}, {1}), u8({}, {0})}, "expected zero points in i8 [], got u8 []");
  expect_refused({x, f32({}, {1}), i8({2}, {0, 0})}, "expected zero points in i8 [], got i8 [2]");
  expect_refused({x, f32({}, {1})}, "expected no blocks, got a block_size of 16",
                 {onnx_attribute("block_size", std::int64_t{16})});
  expect_refused({i32({1}, {1}), f32({}, {1})}, "expected integers in u8 or i8, got i32");
  expect_refused({x}, "expected at least 2 inputs, got 1");
  EXPECT_EQ(error_text([&] {
              compute("QuantizeLinear", {x, f32({}, {1})});
            }),
            "[onnx] QuantizeLinear: expected values in f32, got i8");
  EXPECT_EQ(error_text([&] {
              compute("QuantizeLinear", {f32({1}, {1}), f32({}, {1}), i32({}, {0})});
            }),
            "[onnx] QuantizeLinear: expected integers in u8 or i8, got i32");
}

TEST(OnnxOperators, Products_AgreeWithSums) {
  const OnnxTensor a = f32({2, 3}, {1, 2, 3, 4, 5, 6}), b = f32({3, 2}, {1, 0, 0, 1, 1, 1});
  EXPECT_EQ(values<float>(compute("MatMul", {a, b})[0]), (Floats{4, 5, 10, 11}));
  const OnnxTensor batch = f32({2, 1, 2}, {1, 2, 3, 4});
  EXPECT_EQ(values<float>(compute("MatMul", {batch, f32({2, 1}, {1, 10})})[0]), (Floats{21, 43}));
  EXPECT_EQ(values<float>(compute("MatMul", {f32({1, 1}, {2}), batch})[0]), (Floats{2, 4, 6, 8}));
  EXPECT_NE(error_text([&] { compute("MatMul", {a, a}); }).find("expected matrices"), std::string::npos);
  EXPECT_EQ(values<float>(compute("Gemm", {a, f32({2, 3}, {1, 0, 1, 0, 1, 1}), f32({2}, {10, 20})},
                                  {onnx_attribute("transB", std::int64_t{1})})[0]),
            (Floats{14, 25, 20, 31}));
  EXPECT_EQ(values<float>(compute("Gemm", {a, b})[0]), (Floats{4, 5, 10, 11}));
  const OnnxTensor product =
      compute("MatMulInteger", {u8({1, 3}, {255, 0, 255}), u8({3, 2}, {255, 0, 9, 9, 255, 1})})[0];
  EXPECT_EQ(product.type, OnnxType::i32);
  EXPECT_EQ(values<std::int32_t>(product), (std::vector<std::int32_t>{130050, 255}));
}

// A convolution by its definition.
float conv_at(const OnnxTensor& x, const OnnxTensor& w, std::int64_t groups, int stride, int pad,
              int dilation, std::int64_t n, std::int64_t filter, std::int64_t y, std::int64_t column) {
  double sum = 0;
  const std::int64_t own = w.dims[1], group = filter / (w.dims[0] / groups);
  for (std::int64_t c = 0; c < own; ++c)
    for (std::int64_t i = 0; i < w.dims[2]; ++i)
      for (std::int64_t j = 0; j < w.dims[3]; ++j) {
        const std::int64_t from_y = y * stride - pad + i * dilation,
                           from_x = column * stride - pad + j * dilation;
        if (from_y < 0 || from_y >= x.dims[2] || from_x < 0 || from_x >= x.dims[3]) continue;
        sum +=
            x.values<float>()[((n * x.dims[1] + group * own + c) * x.dims[2] + from_y) * x.dims[3] + from_x] *
            w.values<float>()[((filter * own + c) * w.dims[2] + i) * w.dims[3] + j];
      }
  return static_cast<float>(sum);
}

Floats numbers(std::int64_t count, float step) {
  Floats made;
  for (std::int64_t i = 0; i < count; ++i) made.push_back(std::sin(step * static_cast<float>(i)));
  return made;
}

TEST(OnnxOperators, Conv_FollowsItsDefinition) {
  struct Case {
    std::int64_t groups;
    int stride, pad, dilation;
  };
  const OnnxTensor x = f32({2, 4, 6, 7}, numbers(2 * 4 * 6 * 7, 0.7f));
  for (const Case& c : {Case{1, 1, 1, 1}, Case{2, 2, 1, 1}, Case{4, 1, 2, 2}, Case{1, 3, 0, 1}}) {
    const OnnxTensor w = f32({8, 4 / c.groups, 3, 3}, numbers(8 * 4 / c.groups * 9, 0.3f));
    const std::vector<std::int64_t> both{c.stride, c.stride}, dilation{c.dilation, c.dilation};
    const OnnxTensor y = compute(
        "Conv", {x, w, f32({8}, Floats(8, 0.5f))},
        {onnx_attribute("strides", both), onnx_attribute("dilations", dilation),
         onnx_attribute("pads", std::vector<std::int64_t>(4, c.pad)), onnx_attribute("group", c.groups)})[0];
    ASSERT_EQ(y.dims[2], (6 + 2 * c.pad - 2 * c.dilation - 1) / c.stride + 1);
    const float* at = y.values<float>();
    for (std::int64_t n = 0; n < 2; ++n)
      for (std::int64_t f = 0; f < 8; ++f)
        for (std::int64_t i = 0; i < y.dims[2]; ++i)
          for (std::int64_t j = 0; j < y.dims[3]; ++j)
            ASSERT_NEAR(*at++, 0.5f + conv_at(x, w, c.groups, c.stride, c.pad, c.dilation, n, f, i, j), 1e-5);
  }
  EXPECT_NE(error_text([&] {
              compute("Conv", {x, f32({1, 4, 9, 9}, Floats(324))});
            }).find("window"),
            std::string::npos);
  EXPECT_NE(error_text([&] {
              compute("Conv", {x, f32({1, 3, 1, 1}, Floats(3))});
            }).find("groups"),
            std::string::npos);
}

TEST(OnnxOperators, Pools_HandlePadding) {
  const OnnxTensor x = f32({1, 1, 3, 3}, {-1, -2, -3, -4, -5, -6, -7, -8, -9});
  const std::vector<OnnxAttribute> window{onnx_attribute("kernel_shape", std::vector<std::int64_t>{2, 2}),
                                          onnx_attribute("strides", std::vector<std::int64_t>{2, 2}),
                                          onnx_attribute("pads", std::vector<std::int64_t>{1, 1, 0, 0})};
  EXPECT_EQ(values<float>(compute("MaxPool", {x}, window)[0]), (Floats{-1, -2, -4, -5}));
  EXPECT_EQ(values<float>(compute("AveragePool", {x}, window)[0]), (Floats{-1, -2.5f, -5.5f, -7}));
  auto counted = window;
  counted.push_back(onnx_attribute("count_include_pad", std::int64_t{1}));
  EXPECT_EQ(values<float>(compute("AveragePool", {x}, counted)[0]), (Floats{-0.25f, -1.25f, -2.75f, -7}));
  const OnnxTensor mean = compute("GlobalAveragePool", {x})[0];
  EXPECT_EQ(mean.dims, (OnnxDims{1, 1, 1, 1}));
  EXPECT_EQ(values<float>(mean), (Floats{-5}));
  EXPECT_NE(error_text([&] { compute("MaxPool", {x}); }), "");
}

TEST(OnnxOperators, HugeResults_AreErrors) {
  const OnnxTensor row = f32({1, 1 << 16}, Floats(1 << 16)), column = f32({1 << 16, 1}, Floats(1 << 16));
  EXPECT_NE(error_text([&] { compute("Add", {row, column}); }).find("at most 2^33 bytes"), std::string::npos);
}

}  // namespace
}  // namespace tandem
