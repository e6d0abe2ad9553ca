// Element types: `DType` at run time, C++ types at compile time. dtype_of<T> maps from the second to the
// first.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>

namespace tandem {

/// bfloat16: the upper half of an f32, with the same range and 8 bits of precision. Arithmetic is done in
/// f32.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  /// Rounds to nearest, ties to even. NaN stays NaN.
  constexpr explicit BFloat16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    const std::uint32_t rounded = word + 0x7fffu + ((word >> 16) & 1u);
    bits = static_cast<std::uint16_t>(is_nan ? (word >> 16) | 0x40u : rounded >> 16);
  }
  constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

/// The dtype of a tensor's elements.
enum class DType : std::uint8_t { f32, f64, bf16, u8, i32, i64 };

/// Bytes per element.
constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

/// "f32", "f64", "bf16", "u8", "i32" or "i64".
constexpr std::string_view name_of(DType dtype) {
  constexpr std::string_view names[] = {"f32", "f64", "bf16", "u8", "i32", "i64"};
  return names[static_cast<int>(dtype)];
}

/// Writes name_of().
std::ostream& operator<<(std::ostream& out, DType dtype);

/// True for f32, f64 and bf16.
constexpr bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16;
}

/// The inverse of name_of(). Throws Error for an unknown name.
DType parse_dtype(std::string_view name);

/// Maps a C++ element type to its DType. Use dtype_of<T>.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
/// The DType of a C++ element type: dtype_of<float> is DType::f32.
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

/// Maps an element type to the type its arithmetic uses. Use ComputeType<T>.
template <class T>
struct ComputeTypeOf {
  using type = T;
};
template <>
struct ComputeTypeOf<BFloat16> {
  using type = float;
};
/// The type arithmetic on T uses: float for BFloat16, otherwise T.
template <class T>
using ComputeType = typename ComputeTypeOf<T>::type;

}  // namespace tandem
