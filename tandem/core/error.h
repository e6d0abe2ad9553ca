// Errors. `Error` is what a user can cause and can mend: its text is one sentence that says what was expected
// and what was found. `InternalError` is a bug of ours and says where. check() (check.h) throws the first,
// expect() the second. This header is free of fmt so that CUDA sources can include it.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace tandem {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void throw_internal_error(const std::source_location& where);

// States something our own code guarantees; a failure is a bug in Tandem, never the user's doing.
inline void expect(bool holds, const std::source_location& where = std::source_location::current()) {
  if (!holds) [[unlikely]]
    throw_internal_error(where);
}

}  // namespace tandem
