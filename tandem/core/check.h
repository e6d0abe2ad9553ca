// check() and fail(): throw an Error with a formatted message.
#pragma once

#include <fmt/core.h>

#include "tandem/core/error.h"

namespace tandem {

namespace detail {
// Out of line, so that callers compile neither the formatting nor the throw.
[[noreturn]] void throw_error(fmt::string_view format, fmt::format_args args);
}  // namespace detail

/// Throws Error with the formatted message.
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  detail::throw_error(text, fmt::make_format_args(args...));
}

/// Throws Error with the formatted message when `condition` is false:
/// check(rank == 2, "[matmul] expected a matrix, got shape {}", shape).
template <class... Args>
void check(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) [[unlikely]]
    detail::throw_error(text, fmt::make_format_args(args...));
}

}  // namespace tandem
