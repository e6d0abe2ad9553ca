#include "tandem/files/npz.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "tandem/core/check.h"
#include "tandem/files/zip.h"
#include "tandem/text/parse_number.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

struct NpyType {
  std::string_view description, name;
  std::uint64_t size;
};
constexpr NpyType types[] = {{"<f4", "F32", 4}, {"<f8", "F64", 8}, {"<f2", "F16", 2}, {"|u1", "U8", 1},
                             {"|i1", "I8", 1},  {"<u2", "U16", 2}, {"<i2", "I16", 2}, {"<u4", "U32", 4},
                             {"<i4", "I32", 4}, {"<u8", "U64", 8}, {"<i8", "I64", 8}, {"|b1", "BOOL", 1}};

// What follows "'key':" in the header, a dictionary as Python prints it; nothing if the key is missing.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key) {
  const std::string quoted = "'" + std::string(key) + "':";
  const std::size_t at = header.find(quoted);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = header.substr(at + quoted.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

// The text between two characters at the beginning.
std::optional<std::string_view> inside(std::optional<std::string_view> text, char begin, char end) {
  if (!text || !text->starts_with(begin)) return std::nullopt;
  const std::size_t at = text->find(end, 1);
  return at == std::string_view::npos ? std::nullopt : std::optional(text->substr(1, at - 1));
}

std::optional<std::vector<std::int64_t>> parse_sizes(std::string_view text) {
  std::vector<std::int64_t> sizes;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return sizes;
    const std::string_view number = text.substr(0, text.find(','));
    const auto size = parse_number<std::int64_t>(number);
    if (!size || *size < 0 || sizes.size() == max_rank) return std::nullopt;
    sizes.push_back(*size);
    text.remove_prefix(std::min(number.size() + 1, text.size()));
  }
}

Shape to_shape(const std::vector<std::int64_t>& sizes, const std::string& name) {
  try {
    return Shape(std::span<const std::int64_t>(sizes));
  } catch (const Error&) {
    fail("[npy] {}: the product of its sizes {} is too large", name,
         Dims(std::span<const std::int64_t>(sizes)).to_string());
  }
}

}  // namespace

NpyArray parse_npy(std::string_view bytes, const std::string& name) {
  constexpr std::string_view magic = "\x93NUMPY";
  const auto byte = [&](std::size_t at) { return std::size_t{static_cast<unsigned char>(bytes[at])}; };
  check(bytes.starts_with(magic) && bytes.size() >= 12 && byte(6) >= 1 && byte(6) <= 3,
        "[npy] {}: not a NumPy array, or truncated", name);
  const std::size_t length_bytes = byte(6) == 1 ? 2 : 4, data_at = 8 + length_bytes;
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= byte(8 + i) << (8 * i);
  check(length <= bytes.size() - data_at, "[npy] {}: the file is truncated", name);
  const std::string_view header = bytes.substr(data_at, length), data = bytes.substr(data_at + length);

  const auto description = inside(value_of(header, "descr"), '\'', '\'');
  const auto order = value_of(header, "fortran_order");
  const auto sizes_text = inside(value_of(header, "shape"), '(', ')');
  check(description && order && sizes_text, "[npy] {}: expected descr, fortran_order and shape in the header",
        name);
  const auto* const type = std::ranges::find(types, *description, &NpyType::description);
  check(type != std::end(types), "[npy] {}: expected an array of little-endian numbers, got '{}'", name,
        shorten(one_line(*description), 40));
  const auto sizes = parse_sizes(*sizes_text);
  check(sizes.has_value(), "[npy] {}: expected a shape of at most {} sizes, got '{}'", name, max_rank,
        shorten(one_line(*sizes_text), 40));
  const Shape shape = to_shape(*sizes, name);
  check(order->starts_with("False") || shape.rank() < 2,
        "[npy] {}: expected rows one after the other, got "
        "Fortran's order",
        name);
  const auto numel = static_cast<std::uint64_t>(shape.numel());
  check(numel <= std::numeric_limits<std::uint64_t>::max() / type->size && data.size() == numel * type->size,
        "[npy] {}: shape {} of {} does not fill {} bytes", name, shape.to_string(), type->name, data.size());
  return {name, type->name, shape, std::string(data)};
}

std::vector<NpyArray> read_npz(std::string_view archive, const std::string& name) {
  std::vector<NpyArray> arrays;
  for (const ZipEntry& entry : read_zip(archive, name)) {
    std::string unpacked;
    const std::string label = one_line(entry.name);
    arrays.push_back(parse_npy(unpack_entry(entry, unpacked, name), name + ": " + label));
    arrays.back().name = entry.name.substr(0, entry.name.size() - (entry.name.ends_with(".npy") ? 4 : 0));
  }
  return arrays;
}

}  // namespace tandem
