// Reads opcodes and their arguments from the bytes of a pickle. Every read is checked against the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/files/pickle_opcode.h"
#include "tandem/text/parse_number.h"

namespace tandem {

class PickleCursor {
 public:
  // Sees only the first 64 MiB of `bytes`. `name` is the file in error messages and must outlive the cursor.
  PickleCursor(std::string_view bytes, const std::string& name);

  Opcode read_opcode();
  std::string_view read_bytes(std::uint64_t size);
  std::string_view read_line();               // without its newline
  std::uint64_t read_uint(std::size_t size);  // little-endian
  double read_big_endian_double();

  template <class T>
  T parse(std::string_view text) const {
    const auto value = parse_number<T>(text);
    require(value.has_value());
    return *value;
  }

  // The argument of STRING: repr() of a byte string.
  std::string unquote(std::string_view text) const;
  // The argument of UNICODE: Python's raw-unicode-escape.
  std::string unescape_unicode(std::string_view text) const;

  std::size_t position() const { return position_; }

  // Throws an Error that names the current opcode.
  [[noreturn]] void refuse() const;
  void require(bool condition) const {
    if (!condition) refuse();
  }

 private:
  std::uint32_t parse_hex(std::string_view text, std::size_t begin, std::size_t digits) const;

  std::string_view bytes_;
  const std::string& name_;
  std::size_t position_ = 0;
  std::size_t opcode_position_ = 0;
};

}  // namespace tandem
