#include "tandem/core/simd.h"

namespace tandem {

SimdLevel simd_level() {
#if defined(__x86_64__)
  static const SimdLevel level = [] {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return SimdLevel::baseline;
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return avx512 ? SimdLevel::avx512 : SimdLevel::avx2;
  }();
  return level;
#else
  return SimdLevel::baseline;
#endif
}

std::string_view name_of(SimdLevel level) {
  switch (level) {
    case SimdLevel::avx512:
      return "AVX-512";
    case SimdLevel::avx2:
      return "AVX2";
    case SimdLevel::baseline:
      break;
  }
#if defined(__aarch64__)
  return "NEON";
#elif defined(__x86_64__)
  return "SSE2";
#else
  return "none";
#endif
}

}  // namespace tandem
