// What the fuzz targets have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "tandem/core/error.h"

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

// The result, or nothing for an Error. Any other exception is a crash.
template <class F>
auto result_or_none(const F& f) -> std::optional<decltype(f())> {
  try {
    return f();
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Whether `part` is a view into `whole`.
inline bool is_inside(std::string_view part, std::string_view whole) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

}  // namespace tandem
