// What the fuzz targets have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace tandem {

// What must hold for every input: a failure is a crash, which the fuzzer keeps.
inline void require(bool condition, int line = __builtin_LINE(), const char* file = __builtin_FILE()) {
  if (condition) return;
  std::fprintf(stderr, "%s:%d: the condition does not hold\n", file, line);
  std::abort();
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace tandem
