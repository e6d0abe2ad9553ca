// Conversion of one value between element types: convert() by the rules of C++, Cast by those of cast(),
// which are defined for every value.
#pragma once

#include <concepts>
#include <limits>
#include <type_traits>

#include "tandem/core/dtype.h"

namespace tandem::detail {

// A value of one dtype as another.
template <class To, class From>
constexpr To convert(From value) {
  if constexpr (std::same_as<To, From>)
    return value;
  else if constexpr (std::same_as<To, BFloat16>) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if (!std::is_constant_evaluated()) {  // one instruction instead of seven
      BFloat16 result;
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(static_cast<float>(value)));
      return result;
    }
#endif
    return BFloat16(static_cast<float>(value));
  } else if constexpr (std::same_as<From, BFloat16>)
    return static_cast<To>(static_cast<float>(value));
  else
    return static_cast<To>(value);
}

// Float to integer truncates toward zero and saturates, NaN becomes 0. The operand is a ComputeType.
template <class To>
struct Cast {
  template <class From>
  constexpr To operator()(From x) const {
    if constexpr (std::integral<To> && std::floating_point<From>) {
      using Limits = std::numeric_limits<To>;
      constexpr auto low = static_cast<From>(Limits::min());
      constexpr From above = static_cast<From>(Limits::max() / 2 + 1) * 2;  // max + 1, a power of two: exact
      if (x != x) return To{0};
      return x <= low ? Limits::min() : x >= above ? Limits::max() : static_cast<To>(x);
    } else {
      return convert<To>(x);
    }
  }
};

}  // namespace tandem::detail
