#include "tandem/core/simd.h"

#include <cstdlib>
#include <string>

#include "tandem/core/check.h"

namespace tandem {
namespace {

SimdLevel level_of_this_cpu() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return SimdLevel::baseline;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? SimdLevel::avx512 : SimdLevel::avx2;
#else
  return SimdLevel::baseline;
#endif
}

// The name in TANDEM_SIMD: "avx2" for AVX2.
std::string word_of(SimdLevel level) {
  std::string word;
  for (const char c : name_of(level))
    if (c != '-') word += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return word;
}

}  // namespace

SimdLevel choose_simd_level(std::string_view wanted, SimdLevel available) {
  if (wanted.empty()) return available;
  std::string words;
  for (const SimdLevel level : {SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512}) {
    if (level > available) break;
    if (wanted == word_of(level)) return level;
    words += (words.empty() ? "" : ", ") + word_of(level);
  }
  fail("TANDEM_SIMD: expected one of {}, which this CPU has, got '{}'", words, wanted);
}

SimdLevel simd_level() {
  static const SimdLevel level = [] {
    const char* const wanted = std::getenv("TANDEM_SIMD");
    return choose_simd_level(wanted ? wanted : "", level_of_this_cpu());
  }();
  return level;
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
