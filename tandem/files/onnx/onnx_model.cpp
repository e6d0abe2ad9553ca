#include "tandem/files/onnx/onnx_model.h"

#include <fmt/ranges.h>

#include <cmath>

#include "tandem/core/check.h"

namespace tandem {

std::string name_of(OnnxType type) {
  switch (type) {
    case OnnxType::undefined:
      return "undefined";
    case OnnxType::f32:
      return "f32";
    case OnnxType::u8:
      return "u8";
    case OnnxType::i8:
      return "i8";
    case OnnxType::u16:
      return "u16";
    case OnnxType::i16:
      return "i16";
    case OnnxType::i32:
      return "i32";
    case OnnxType::i64:
      return "i64";
    case OnnxType::text:
      return "text";
    case OnnxType::boolean:
      return "bool";
    case OnnxType::f16:
      return "f16";
    case OnnxType::f64:
      return "f64";
    case OnnxType::u32:
      return "u32";
    case OnnxType::u64:
      return "u64";
    case OnnxType::bf16:
      return "bf16";
  }
  return fmt::format("type {}", static_cast<std::int32_t>(type));
}

std::int64_t size_of(OnnxType type) {
  switch (type) {
    case OnnxType::u8:
    case OnnxType::i8:
    case OnnxType::boolean:
      return 1;
    case OnnxType::u16:
    case OnnxType::i16:
    case OnnxType::f16:
    case OnnxType::bf16:
      return 2;
    case OnnxType::f32:
    case OnnxType::i32:
    case OnnxType::u32:
      return 4;
    case OnnxType::f64:
    case OnnxType::i64:
    case OnnxType::u64:
      return 8;
    default:
      return 0;
  }
}

std::int64_t element_count(const OnnxDims& dims) {
  std::int64_t count = 1;
  bool fits = true;
  for (const std::int64_t size : dims)
    fits = fits && size >= 0 && !__builtin_mul_overflow(count, size, &count);
  check(fits, "[onnx] expected sizes of 0 or more with a product below 2^63, got {}", to_string(dims));
  return count;
}

std::string to_string(const OnnxDims& dims) {
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

std::string OnnxValue::to_string() const {
  if (type == OnnxType::undefined) return "not a tensor";
  if (!has_shape) return name_of(type) + " of any shape";
  std::string text;
  for (const OnnxSize& size : sizes) {
    if (!text.empty()) text += ", ";
    text += size.value >= 0 ? fmt::format("{}", size.value) : size.name.empty() ? "?" : size.name;
  }
  return fmt::format("{} [{}]", name_of(type), text);
}

std::uint16_t to_half(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(word >> 16 & 0x8000u);
  const float magnitude = std::bit_cast<float>(word & 0x7fffffffu);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x1p-14f)  // the result is a multiple of 2^-24
    return static_cast<std::uint16_t>(sign | static_cast<unsigned>(std::nearbyint(magnitude * 0x1p24f)));
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(magnitude) - (112u << 23);
  return static_cast<std::uint16_t>(sign | (bits + 0xfffu + (bits >> 13 & 1u)) >> 13);
}

}  // namespace tandem
