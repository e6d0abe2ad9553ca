// Exceptions. `Error` reports a mistake the caller can fix; `InternalError` reports a bug in Tandem. check()
// in check.h throws the first, expect() the second. This header does not use fmt, so CUDA sources can include
// it.
#pragma once

#include <stdexcept>
#include <string>

namespace tandem {

/// Thrown for invalid arguments, unreadable files, missing devices and other conditions the caller can fix.
/// what() is one sentence: "[op] expected ..., got ...".
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown when an invariant of the library is violated. what() names the source location.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// A replacement for std::source_location, which Clang 14 lacks with some standard libraries.
struct SourceLocation {
  const char* file;
  const char* function;
  int line;

  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          const char* function = __builtin_FUNCTION(),
                                          int line = __builtin_LINE()) {
    return {file, function, line};
  }
};

/// Throws the InternalError of a failed expect().
[[noreturn]] void throw_internal_error(const SourceLocation& where);

/// Asserts an invariant of the library, in release builds too. Throws InternalError when `condition` is
/// false.
inline void expect(bool condition, const SourceLocation& where = SourceLocation::current()) {
  if (!condition) [[unlikely]]
    throw_internal_error(where);
}

/// The message for an errno value, with advice where a system limit was reached. Use it with fail() after the
/// failed call, not with check(), whose arguments may be evaluated before the call sets errno.
std::string errno_message(int error_number);

}  // namespace tandem
