#include "tandem/files/onnx/protobuf.h"

#include <bit>
#include <cstring>

#include "tandem/core/check.h"

namespace tandem {
namespace {

static_assert(std::endian::native == std::endian::little);

void append_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>((value & 0x7f) | 0x80));
  to.push_back(static_cast<char>(value));
}

template <class T>
void append_raw(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

void ProtoWriter::add_key(int field, int wire_type) {
  append_varint(bytes_, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire_type));
}

void ProtoWriter::add_int(int field, std::int64_t value) {
  add_key(field, 0);
  append_varint(bytes_, static_cast<std::uint64_t>(value));
}

void ProtoWriter::add_float(int field, float value) {
  add_key(field, 5);
  append_raw(bytes_, value);
}

void ProtoWriter::add_bytes(int field, std::string_view bytes) {
  add_key(field, 2);
  append_varint(bytes_, bytes.size());
  bytes_.append(bytes);
}

void ProtoWriter::add_ints(int field, const std::vector<std::int64_t>& values) {
  std::string packed;
  for (const std::int64_t value : values) append_varint(packed, static_cast<std::uint64_t>(value));
  add_bytes(field, packed);
}

void ProtoWriter::add_floats(int field, const std::vector<float>& values) {
  add_bytes(field, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

std::uint64_t ProtoReader::read_varint(std::string_view& from) const {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    check(!from.empty(), "[onnx] {}: the file is truncated", file_);
    const auto byte = static_cast<std::uint8_t>(from.front());
    from.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  fail("[onnx] {}: not an ONNX file, or damaged: a number has more than 64 bits", file_);
}

std::string_view ProtoReader::read_bytes(std::uint64_t count) {
  check(count <= rest_.size(), "[onnx] {}: the file is truncated: a field of {} bytes, {} are left", file_,
        count, rest_.size());
  const std::string_view bytes = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return bytes;
}

bool ProtoReader::next() {
  if (rest_.empty()) return false;
  const std::uint64_t key = read_varint(rest_), field = key >> 3;
  check(field >= 1 && field < (1u << 29),
        "[onnx] {}: not an ONNX file, or damaged: a field has the number {}", file_, field);
  field_ = static_cast<int>(field);
  type_ = static_cast<WireType>(key & 7);
  switch (type_) {
    case varint:
      number_ = read_varint(rest_);
      return true;
    case fixed64:
    case fixed32: {
      const std::string_view raw = read_bytes(type_ == fixed64 ? 8 : 4);
      number_ = 0;
      std::memcpy(&number_, raw.data(), raw.size());
      return true;
    }
    case length_delimited:
      bytes_ = read_bytes(read_varint(rest_));
      return true;
  }
  fail("[onnx] {}: not an ONNX file, or damaged: field {} has the wire type {}", file_, field, key & 7);
}

void ProtoReader::expect_type(WireType type) const {
  check(type_ == type, "[onnx] {}: not an ONNX file, or damaged: expected wire type {} in field {}, got {}",
        file_, static_cast<int>(type), field_, static_cast<int>(type_));
}

void ProtoReader::expect_count(std::size_t count, std::size_t max_count) const {
  check(count <= max_count, "[onnx] {}: expected at most {} values in field {}, got {}", file_, max_count,
        field_, count);
}

std::int64_t ProtoReader::get_int() const {
  expect_type(varint);
  return static_cast<std::int64_t>(number_);
}

float ProtoReader::get_float() const {
  expect_type(fixed32);
  return std::bit_cast<float>(static_cast<std::uint32_t>(number_));
}

std::string_view ProtoReader::get_bytes() const {
  expect_type(length_delimited);
  return bytes_;
}

void ProtoReader::append_ints(std::vector<std::int64_t>& to, std::size_t max_count) const {
  if (type_ != length_delimited) {
    expect_count(to.size() + 1, max_count);
    to.push_back(get_int());
    return;
  }
  for (std::string_view from = bytes_; !from.empty();) {
    expect_count(to.size() + 1, max_count);
    to.push_back(static_cast<std::int64_t>(read_varint(from)));
  }
}

template <class T>
void ProtoReader::append_fixed(std::vector<T>& to, WireType type, std::size_t max_count) const {
  if (type_ != length_delimited) expect_type(type);
  const std::string_view raw = type_ == length_delimited
                                   ? bytes_
                                   : std::string_view(reinterpret_cast<const char*>(&number_), sizeof(T));
  check(raw.size() % sizeof(T) == 0, "[onnx] {}: damaged: field {} has {} bytes, not a multiple of {}", file_,
        field_, raw.size(), sizeof(T));
  const std::size_t before = to.size(), count = raw.size() / sizeof(T);
  expect_count(before + count, max_count);
  to.resize(before + count);
  if (count > 0) std::memcpy(to.data() + before, raw.data(), raw.size());
}

void ProtoReader::append_floats(std::vector<float>& to, std::size_t max_count) const {
  append_fixed(to, fixed32, max_count);
}

void ProtoReader::append_doubles(std::vector<double>& to, std::size_t max_count) const {
  append_fixed(to, fixed64, max_count);
}

}  // namespace tandem
