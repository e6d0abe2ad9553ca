// Element types. `DType` is the run-time name, C++ types are the compile-time ones; on_dtype() goes from the
// first to the second once, at the top of an operation.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "tandem/core/error.h"

namespace tandem {

// The upper half of an f32: same range, 8 bits of precision. Arithmetic is done in f32.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  // Rounds to nearest, ties to even; NaN stays NaN.
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

enum class DType : std::uint8_t { f32, f64, bf16, u8, i32, i64 };

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

constexpr std::string_view name_of(DType dtype) {
  constexpr std::string_view names[] = {"f32", "f64", "bf16", "u8", "i32", "i64"};
  return names[static_cast<int>(dtype)];
}

constexpr bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16;
}

// "f32" → DType::f32; throws Error for anything else.
DType parse_dtype(std::string_view name);

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
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

// The type an element is computed in: f32 for bf16, itself otherwise.
template <class T>
struct ComputeTypeOf {
  using type = T;
};
template <>
struct ComputeTypeOf<BFloat16> {
  using type = float;
};
template <class T>
using ComputeType = typename ComputeTypeOf<T>::type;

template <class... Ts>
struct TypeList {};

using AllTypes = TypeList<float, double, BFloat16, std::uint8_t, std::int32_t, std::int64_t>;
using FloatTypes = TypeList<float, double, BFloat16>;
using ArithmeticTypes = TypeList<float, double, BFloat16, std::int32_t, std::int64_t>;

[[noreturn]] void throw_unsupported_dtype(std::string_view op, DType dtype, const DType* allowed, int count);

// Calls f.operator()<T>() with the C++ type of `dtype`, which must be one of the list's:
// on_dtype(FloatTypes{}, x.dtype(), "relu", [&]<class T>() { … }).
template <class... Ts, class F>
auto on_dtype(TypeList<Ts...>, DType dtype, std::string_view op, F&& f) {
  using Result = decltype(f.template operator()<std::tuple_element_t<0, std::tuple<Ts...>>>());
  if constexpr (std::same_as<Result, void>) {
    const bool found = ((dtype == dtype_of<Ts> ? (f.template operator()<Ts>(), true) : false) || ...);
    if (found) return;
  } else {
    Result result{};
    const bool found =
        ((dtype == dtype_of<Ts> ? (result = f.template operator()<Ts>(), true) : false) || ...);
    if (found) return result;
  }
  constexpr DType allowed[] = {dtype_of<Ts>...};
  throw_unsupported_dtype(op, dtype, allowed, static_cast<int>(sizeof...(Ts)));
}

}  // namespace tandem
