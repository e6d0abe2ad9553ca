// Dispatch from a run-time DType to a C++ type, done once at the top of an operation.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "tandem/core/dtype.h"

namespace tandem {

/// A list of C++ element types.
template <class... Ts>
struct TypeList {};

using AllTypes = TypeList<float, double, BFloat16, std::uint8_t, std::int32_t, std::int64_t>;
using FloatTypes = TypeList<float, double, BFloat16>;
using ArithmeticTypes = TypeList<float, double, BFloat16, std::int32_t, std::int64_t>;

namespace detail {
[[noreturn]] void throw_unsupported_dtype(std::string_view op, DType dtype, const DType* allowed, int count);
}  // namespace detail

/// Calls `f.operator()<T>()` with the C++ type of `dtype`. Throws Error, naming `op`, when it is not in the
/// list: `on_dtype(FloatTypes{}, x.dtype(), "relu", [&]<class T>() { ... })`.
template <class... Ts, class F>
auto on_dtype(TypeList<Ts...>, DType dtype, std::string_view op, F&& f) {
  using Result = decltype(f.template operator()<std::tuple_element_t<0, std::tuple<Ts...>>>());
  if constexpr (std::is_void_v<Result>) {
    const bool found = ((dtype == dtype_of<Ts> ? (f.template operator()<Ts>(), true) : false) || ...);
    if (found) return;
  } else {
    Result result{};
    const bool found =
        ((dtype == dtype_of<Ts> ? (result = f.template operator()<Ts>(), true) : false) || ...);
    if (found) return result;
  }
  constexpr DType allowed[] = {dtype_of<Ts>...};
  detail::throw_unsupported_dtype(op, dtype, allowed, static_cast<int>(sizeof...(Ts)));
}

}  // namespace tandem
