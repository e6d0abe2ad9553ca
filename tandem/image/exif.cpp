#include "tandem/image/exif.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "tandem/core/error.h"

namespace tandem {

std::optional<int> find_exif_orientation(std::span<const uint8_t> block) {
  constexpr std::string_view prefix("Exif\0\0", 6);
  if (block.size() >= prefix.size() && std::memcmp(block.data(), prefix.data(), prefix.size()) == 0)
    block = block.subspan(prefix.size());
  if (block.size() < 8) return std::nullopt;
  const bool little = block[0] == 'I' && block[1] == 'I';
  if (!little && !(block[0] == 'M' && block[1] == 'M')) return std::nullopt;

  const auto u16 = [&](size_t at) {
    return little ? uint32_t(block[at] | block[at + 1] << 8) : uint32_t(block[at] << 8 | block[at + 1]);
  };
  const auto u32 = [&](size_t at) {
    return little ? u16(at) | u16(at + 2) << 16 : u16(at) << 16 | u16(at + 2);
  };
  if (u16(2) != 42) return std::nullopt;
  const size_t directory = u32(4);
  if (directory > block.size() - 2) return std::nullopt;
  const size_t entries = u16(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + 12 * i;
    if (entry + 12 > block.size()) return std::nullopt;
    if (u16(entry) != 0x0112) continue;
    constexpr uint32_t type_short = 3, type_long = 4;
    const uint32_t type = u16(entry + 2);
    const uint32_t value = type == type_short ? u16(entry + 8) : type == type_long ? u32(entry + 8) : 1;
    return value >= 1 && value <= 8 ? int(value) : 1;
  }
  return std::nullopt;
}

int exif_orientation(std::span<const uint8_t> block) {
  return find_exif_orientation(block).value_or(1);
}

std::optional<int> find_xmp_orientation(std::string_view xmp) {
  constexpr std::string_view name = "tiff:Orientation";
  for (size_t at = xmp.find(name); at != std::string_view::npos; at = xmp.find(name, at)) {
    at += name.size();
    std::string_view rest = xmp.substr(at, 3);  // ="6 or >6
    if (rest.starts_with("=\"") || rest.starts_with("='"))
      rest.remove_prefix(2);
    else if (rest.starts_with('>'))
      rest.remove_prefix(1);
    else
      continue;
    const char digit = rest.empty() ? '0' : rest[0];
    return digit >= '1' && digit <= '8' ? digit - '0' : 1;
  }
  return std::nullopt;
}

namespace {

// Each of the eight orientations is a combination of these three.
struct OrientationSteps {
  bool swap_axes;
  bool flip_rows;
  bool flip_columns;
};

OrientationSteps steps_of(int orientation) {
  expect(orientation >= 1 && orientation <= 8);
  return {.swap_axes = swaps_axes(orientation),
          .flip_rows = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7,
          .flip_columns = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8};
}

}  // namespace

PixelBox stored_box(const PixelBox& upright_box, int64_t height, int64_t width, int orientation) {
  const OrientationSteps steps = steps_of(orientation);
  PixelBox box = upright_box;
  if (steps.swap_axes) box = {box.y, box.x, box.height, box.width};
  if (steps.flip_rows) box.y = height - box.y - box.height;
  if (steps.flip_columns) box.x = width - box.x - box.width;
  return box;
}

Image apply_orientation(Image image, int orientation) {
  const auto [swap_axes, flip_rows, flip_columns] = steps_of(orientation);
  if (orientation == 1) return image;
  Image out = swap_axes ? make_image(image.width, image.height, image.channels)
                        : make_image(image.height, image.width, image.channels);
  for (int64_t y = 0; y < out.height; ++y) {
    uint8_t* to = out.row(y);
    for (int64_t x = 0; x < out.width; ++x) {
      const int64_t row = swap_axes ? x : y, column = swap_axes ? y : x;
      const uint8_t* from = image.row(flip_rows ? image.height - 1 - row : row) +
                            image.channels * (flip_columns ? image.width - 1 - column : column);
      to = std::copy_n(from, image.channels, to);
    }
  }
  return out;
}

}  // namespace tandem
