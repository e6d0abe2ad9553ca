// The wire format of protocol buffers: enough to write and read ONNX files. A message is a list of fields; a
// field is its number, its wire type and its value. Nothing here allocates memory for what a file merely
// claims: a length is checked against the bytes that are there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Writes the fields of one message.
class ProtoWriter {
 public:
  void add_int(int field, std::int64_t value);
  void add_float(int field, float value);
  void add_bytes(int field, std::string_view bytes);
  void add_message(int field, const ProtoWriter& message) { add_bytes(field, message.bytes_); }
  // As one packed field.
  void add_ints(int field, const std::vector<std::int64_t>& values);
  void add_floats(int field, const std::vector<float>& values);

  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  void add_key(int field, int wire_type);

  std::string bytes_;
};

// Reads the fields of one message in order: while (fields.next()) switch (fields.field()) … A field that is
// not asked for is skipped. Throws Error ("[onnx] FILE: …") for bytes that are not a message, and when a
// value is asked for as a type that it does not have.
class ProtoReader {
 public:
  // `file` is named in errors; it and the bytes must outlive the reader.
  ProtoReader(std::string_view bytes, std::string_view file) : rest_(bytes), file_(file) {}

  // Goes to the next field; false at the end.
  bool next();
  int field() const { return field_; }

  std::int64_t get_int() const;
  float get_float() const;
  // Of a string, bytes or a message.
  std::string_view get_bytes() const;
  ProtoReader get_message() const { return {get_bytes(), file_}; }
  // Appends a repeated field: packed, or one value. Throws Error for more than `max_count` values in total.
  void append_ints(std::vector<std::int64_t>& to, std::size_t max_count) const;
  void append_floats(std::vector<float>& to, std::size_t max_count) const;
  void append_doubles(std::vector<double>& to, std::size_t max_count) const;

 private:
  enum WireType : std::uint8_t { varint = 0, fixed64 = 1, length_delimited = 2, fixed32 = 5 };

  std::uint64_t read_varint(std::string_view& from) const;
  std::string_view read_bytes(std::uint64_t count);
  void expect_type(WireType type) const;
  void expect_count(std::size_t count, std::size_t max_count) const;
  template <class T>
  void append_fixed(std::vector<T>& to, WireType type, std::size_t max_count) const;

  std::string_view rest_, file_;
  int field_ = 0;
  WireType type_ = varint;
  std::uint64_t number_ = 0;  // the value of a varint or fixed field
  std::string_view bytes_;    // the value of a length-delimited field
};

}  // namespace tandem
