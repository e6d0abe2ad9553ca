// Results that go to a file or, for the path "-", to standard output.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "tandem/core/write_file.h"

namespace tandem {

inline bool is_stdout(std::string_view path) {
  return path == "-";
}

// Throws Error now if write_output() could not write later. An empty path is not written.
inline void check_output(const std::string& path, const char* op) {
  if (!path.empty() && !is_stdout(path)) check_writable(op, path);
}

// An error on standard output is reported when the program ends.
inline void write_output(const std::string& path, std::string_view text, const char* op) {
  if (is_stdout(path))
    std::fwrite(text.data(), 1, text.size(), stdout);
  else
    write_file(op, path, text);
}

}  // namespace tandem
