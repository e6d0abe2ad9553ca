// SIMD by run-time check. with_simd(f) calls f inside a function compiled for the widest vectors this CPU
// has, so that f, when it is inlined there, is vectorised for them; nothing is assumed that was not checked.
// The body must be inlinable: give the lambda [[gnu::always_inline]] and call only inline code from it.
#pragma once

#include <cstddef>
#include <string_view>

namespace tandem {

enum class SimdLevel { baseline, avx2, avx512 };

SimdLevel simd_level();
std::string_view name_of(SimdLevel level);  // "NEON", "SSE2", "AVX2", "AVX-512"

// `count` lanes of T as one value, with element-wise operators (the compilers' vector extension).
template <class T, std::size_t bytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));
};
template <class T, std::size_t bytes>
using Vector = typename VectorOf<T, bytes>::type;

#if defined(__x86_64__)
template <class F>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")]] void run_avx512(F& f) {
  f.template operator()<64>();
}
template <class F>
[[gnu::target("avx2,fma")]] void run_avx2(F& f) {
  f.template operator()<32>();
}
#endif

// f.operator()<vector_bytes>() with vector_bytes 16, 32 or 64.
template <class F>
void with_simd(F&& f) {
#if defined(__x86_64__)
  switch (simd_level()) {
    case SimdLevel::avx512:
      return run_avx512(f);
    case SimdLevel::avx2:
      return run_avx2(f);
    case SimdLevel::baseline:
      break;
  }
#endif
  f.template operator()<16>();
}

}  // namespace tandem
