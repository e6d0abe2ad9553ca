#include "tandem/files/idx.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/files/gzip.h"
#include "tandem/files/read_file.h"

namespace tandem {
namespace {

constexpr std::size_t max_unpacked_bytes = std::size_t{1} << 31;

struct ElementType {
  int code;
  DType dtype;
};
constexpr ElementType element_types[] = {
    {0x08, DType::u8}, {0x0C, DType::i32}, {0x0D, DType::f32}, {0x0E, DType::f64}};

std::uint32_t big_endian_word(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes.substr(0, 4)) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

void copy_reversed(std::byte* to, std::string_view from, std::size_t element_size) {
  std::memcpy(to, from.data(), from.size());
  for (std::size_t at = 0; at < from.size(); at += element_size)
    std::reverse(to + at, to + at + element_size);
}

Tensor parse_raw(std::string_view bytes, const std::string& name) {
  check(bytes.size() >= 4, "[idx] {}: expected at least 4 bytes, got {}", name, bytes.size());
  check(bytes[0] == 0 && bytes[1] == 0, "[idx] {}: not an idx file", name);
  const int code = static_cast<unsigned char>(bytes[2]);
  const auto* type = std::ranges::find(element_types, code, &ElementType::code);
  check(type != std::end(element_types),
        "[idx] {}: expected an element type of 0x08 (u8), 0x0C (i32), 0x0D (f32), 0x0E (f64), got {:#04x}",
        name, code);
  const int rank = static_cast<unsigned char>(bytes[3]);
  check(rank >= 1 && rank <= max_rank, "[idx] {}: expected 1 to {} dimensions, got {}", name, max_rank, rank);
  const std::size_t header_size = 4 + 4 * static_cast<std::size_t>(rank);
  check(bytes.size() >= header_size, "[idx] {}: the file is truncated: {} bytes, its header needs {}", name,
        bytes.size(), header_size);

  // Size of the elements in bytes, saturated.
  constexpr std::uint64_t saturated = std::uint64_t{1} << 62;
  std::uint64_t expected = size_of(type->dtype);
  std::vector<std::int64_t> sizes;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(rank); ++axis) {
    const std::uint64_t size = big_endian_word(bytes.substr(4 + 4 * axis));
    sizes.push_back(static_cast<std::int64_t>(size));
    expected = size != 0 && expected > saturated / size ? saturated : expected * size;
  }
  const std::string_view elements = bytes.substr(header_size);
  const std::string shape = Dims(std::span<const std::int64_t>(sizes)).to_string();
  check(elements.size() >= expected,
        "[idx] {}: the file is truncated: {} of {} needs {} bytes after the header, got {}", name, shape,
        name_of(type->dtype), expected, elements.size());
  check(elements.size() == expected, "[idx] {}: {} bytes follow the {} elements of its header", name,
        elements.size() - expected, shape);
  Tensor tensor = Tensor::empty(Shape(std::span<const std::int64_t>(sizes)), type->dtype);
  if (!elements.empty()) copy_reversed(tensor.bytes(), elements, size_of(type->dtype));
  return tensor;
}

}  // namespace

Tensor parse_idx(std::string_view bytes, const std::string& name) {
  return is_gzip(bytes) ? parse_raw(gunzip(bytes, max_unpacked_bytes, name), name) : parse_raw(bytes, name);
}

Tensor read_idx(const std::filesystem::path& path) {
  return parse_idx(read_file("idx", path, max_unpacked_bytes), path.string());
}

void write_idx(const std::filesystem::path& path, const Tensor& tensor) {
  check(tensor.dtype() == DType::u8 && tensor.rank() >= 1,
        "[idx] expected u8 elements of rank 1 or more, got {} of {}", tensor.shape().to_string(),
        name_of(tensor.dtype()));
  std::string bytes{0, 0, 0x08, static_cast<char>(tensor.rank())};
  for (const std::int64_t size : tensor.shape()) {
    check(size <= std::numeric_limits<std::uint32_t>::max(), "[idx] {} is too large for an idx file",
          tensor.shape().to_string());
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift & 0xFF);
  }
  const std::vector<std::uint8_t> elements = tensor.to_vector<std::uint8_t>();
  bytes.append(elements.begin(), elements.end());
  write_file("idx", path, bytes);
}

}  // namespace tandem
