// What went wrong, for people.
#pragma once

#include <exception>
#include <new>

namespace tandem {

// what(), but in words where memory ran out.
inline const char* message_of(const std::exception& error) noexcept {
  return dynamic_cast<const std::bad_alloc*>(&error) ? "out of memory" : error.what();
}

}  // namespace tandem
