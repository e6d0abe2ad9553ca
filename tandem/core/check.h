// check(): tells the user, in one sentence, what was expected and what was found.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "tandem/core/error.h"

namespace tandem {

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(fmt::format(text, std::forward<Args>(args)...));
}

// check(rank == 2, "[matmul] expected a matrix, got shape {}", shape): throws Error unless `holds`.
template <class... Args>
void check(bool holds, fmt::format_string<Args...> text, Args&&... args) {
  if (!holds) [[unlikely]]
    fail(text, std::forward<Args>(args)...);
}

}  // namespace tandem
