// 8-bit integers and back: scale · (stored − zero), with one scale and zero, or one per index of an axis.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tandem/files/onnx/onnx_operators.h"

namespace tandem {
namespace {

struct Scales {
  std::int64_t count = 1, inner = 1;  // scales; elements in a row that share one
  const float* scales = nullptr;
  std::vector<std::int32_t> zeros = {};

  std::size_t index(std::int64_t element) const { return static_cast<std::size_t>(element / inner % count); }
};

// Calls f<T>() for u8 and i8.
template <class F>
void on_8_bits(const OnnxCall& call, OnnxType type, const F& f) {
  call.need(type == OnnxType::u8 || type == OnnxType::i8, "expected integers in u8 or i8, got {}",
            name_of(type));
  if (type == OnnxType::u8)
    f.template operator()<std::uint8_t>();
  else
    f.template operator()<std::int8_t>();
}

// Those of integers of `type`.
Scales scales_of(const OnnxCall& call, OnnxType type) {
  const OnnxTensor &x = call.input(0), &scale = call.input(1);
  call.need(scale.type == OnnxType::f32 && scale.dims.size() <= 1,
            "expected one scale, or one per index of an axis, in f32, got {} {}", name_of(scale.type),
            to_string(scale.dims));
  call.need(call.integer("block_size", 0) == 0, "expected no blocks, got a block_size of {}",
            call.integer("block_size", 0));
  Scales made{.count = scale.count(), .scales = scale.values<float>()};
  call.need(made.count > 0, "expected scales, got none");
  for (std::int64_t i = 0; i < made.count; ++i)
    call.need(std::isfinite(made.scales[i]) && made.scales[i] > 0, "expected positive scales, got {}",
              made.scales[i]);
  if (made.count > 1) {
    const std::size_t axis = onnx_axis(call, call.integer("axis", 1), x.dims.size());
    call.need(x.dims[axis] == made.count, "expected {} scales for axis {} of {}, got {}", x.dims[axis], axis,
              to_string(x.dims), made.count);
    for (std::size_t i = axis + 1; i < x.dims.size() && x.count() > 0; ++i) made.inner *= x.dims[i];
  }
  made.zeros.resize(static_cast<std::size_t>(made.count));
  if (!call.has(2)) return made;
  const OnnxTensor& zero = call.input(2);
  call.need(zero.type == type && zero.dims == scale.dims, "expected zero points in {} {}, got {} {}",
            name_of(type), to_string(scale.dims), name_of(zero.type), to_string(zero.dims));
  on_8_bits(call, type, [&]<class T>() { std::copy_n(zero.values<T>(), made.count, made.zeros.begin()); });
  return made;
}

OnnxTensors dequantize_linear(const OnnxCall& call) {
  const OnnxTensor& x = call.input(0);
  OnnxTensor out;
  on_8_bits(call, x.type, [&]<class T>() {
    const Scales of = scales_of(call, x.type);
    out = make_onnx_tensor(OnnxType::f32, x.dims);
    for (std::int64_t i = 0, count = x.count(); i < count; ++i) {
      const std::size_t at = of.index(i);
      values_of<float>(out)[i] = static_cast<float>(x.values<T>()[i] - of.zeros[at]) * of.scales[at];
    }
  });
  return {std::move(out)};
}

// To nearest, ties to even, clamped. Without a zero point the result is u8.
OnnxTensors quantize_linear(const OnnxCall& call) {
  const OnnxTensor& x = call.input(0);
  call.need(x.type == OnnxType::f32, "expected values in f32, got {}", name_of(x.type));
  const OnnxType type = call.has(2) ? call.input(2).type : OnnxType::u8;
  OnnxTensor out;
  on_8_bits(call, type, [&]<class T>() {
    const Scales to = scales_of(call, type);
    out = make_onnx_tensor(type, x.dims);
    constexpr float min = std::numeric_limits<T>::min(), max = std::numeric_limits<T>::max();
    for (std::int64_t i = 0, count = x.count(); i < count; ++i) {
      const std::size_t at = to.index(i);
      const float level =
          std::nearbyint(x.values<float>()[i] / to.scales[at]) + static_cast<float>(to.zeros[at]);
      values_of<T>(out)[i] = static_cast<T>(level > min ? std::min(level, max) : min);  // NaN: the minimum
    }
  });
  return {std::move(out)};
}

}  // namespace

const std::vector<OnnxOperator>& onnx_quantization_operators() {
  static const std::vector<OnnxOperator> all{{"DequantizeLinear", dequantize_linear},
                                             {"QuantizeLinear", quantize_linear}};
  return all;
}

}  // namespace tandem
