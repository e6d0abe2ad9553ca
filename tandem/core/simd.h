// Run-time SIMD dispatch. with_simd(f) calls f inside a function compiled for the widest vectors this CPU
// supports, so that f is vectorized for them when it is inlined there. f must be inlinable: give the lambda
// [[gnu::always_inline]] and call only inline code from it.
#pragma once

#include <cstddef>
#include <string_view>

namespace tandem {

enum class SimdLevel { baseline, avx2, avx512 };

// What this CPU supports, or less if the environment variable TANDEM_SIMD says so (sse2, avx2, avx512, neon):
// machines with different CPUs give the same bits on the same level. Throws Error for another value.
SimdLevel simd_level();
// The level that `wanted` names, which may be empty; throws Error if it is not one up to `available`.
SimdLevel choose_simd_level(std::string_view wanted, SimdLevel available);
std::string_view name_of(SimdLevel level);  // "NEON", "SSE2", "AVX2", "AVX-512"

// A vector of T of the given size with element-wise operators (the vector extension of GCC and Clang).
template <class T, std::size_t bytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));
};
template <class T, std::size_t bytes>
using Vector = typename VectorOf<T, bytes>::type;

#if defined(__x86_64__)
namespace detail {
template <class F>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")]] void run_avx512(F& f) {
  f.template operator()<64>();
}
template <class F>
[[gnu::target("avx2,fma")]] void run_avx2(F& f) {
  f.template operator()<32>();
}
}  // namespace detail
#endif

// Calls f.operator()<vector_bytes>() with vector_bytes 16, 32 or 64.
template <class F>
void with_simd(F&& f) {
#if defined(__x86_64__)
  switch (simd_level()) {
    case SimdLevel::avx512:
      return detail::run_avx512(f);
    case SimdLevel::avx2:
      return detail::run_avx2(f);
    case SimdLevel::baseline:
      break;
  }
#endif
  f.template operator()<16>();
}

}  // namespace tandem
