// Errors. `Error` is what a user can cause and can mend: its text is one sentence that says what was expected
// and what was found. `InternalError` is a bug of ours and says where. check() (check.h) throws the first,
// expect() the second. This header is free of fmt so that CUDA sources can include it.
#pragma once

#include <stdexcept>

namespace tandem {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Where a call stands: std::source_location, which Clang 14 does not have yet with every standard library.
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

[[noreturn]] void throw_internal_error(const SourceLocation& where);

// States something our own code guarantees; a failure is a bug in Tandem, never the user's doing.
inline void expect(bool holds, const SourceLocation& where = SourceLocation::current()) {
  if (!holds) [[unlikely]]
    throw_internal_error(where);
}

}  // namespace tandem
