// What holds for images of every format: the header says what decoding gives, a region is a part of the
// whole, and whatever is wrong is a DecodeError.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "fuzz/fuzz.h"
#include "tandem/image/decode.h"

namespace tandem {

// `selector` chooses a box within the image.
inline PixelBox box_within(std::int64_t height, std::int64_t width, std::uint64_t selector) {
  const auto part = [&](std::int64_t side) {
    const auto value = static_cast<std::int64_t>(selector & 0xffff);
    selector >>= 16;
    return value % side;
  };
  const std::int64_t y = part(height), x = part(width);
  return {.x = x, .y = y, .width = 1 + part(width - x), .height = 1 + part(height - y)};
}

template <class F>
auto decoded_or_none(const F& f) -> std::optional<decltype(f())> {
  try {
    return f();
  } catch (const DecodeError&) {
    return std::nullopt;
  }
}

// A file of a format that has one of these signatures at `offset`; others are left to other targets.
inline int fuzz_image(std::span<const std::uint8_t> bytes, std::initializer_list<std::string_view> signatures,
                      std::size_t offset = 0) {
  const std::string_view text = text_of(bytes.data(), bytes.size());
  if (std::ranges::none_of(signatures, [&](std::string_view signature) {
        return text.substr(std::min(offset, text.size())).starts_with(signature);
      }))
    return 0;
  constexpr std::string_view name = "image";
  const LoadOptions gray{.max_pixels = 1 << 16}, rgb{.max_pixels = 1 << 16, .rgb = true};
  const auto info = decoded_or_none([&] { return read_image_info(bytes, name, gray); });
  const auto whole = decoded_or_none([&] { return decode_image(bytes, name, gray); });
  require(info || !whole);
  if (!info) return 0;
  require(info->height > 0 && info->width > 0 && info->height <= gray.max_pixels / info->width);
  std::uint64_t selector = 0xcbf29ce484222325;
  for (const std::uint8_t byte : bytes) selector = (selector ^ byte) * 0x100000001b3;
  const PixelBox box = box_within(info->height, info->width, selector);
  const auto region = decoded_or_none([&] { return decode_region(bytes, name, box, gray); });
  const auto scaled =
      decoded_or_none([&] { return decode_scaled(bytes, name, box, box.height / 3, box.width / 3, rgb); });
  if (scaled) require(scaled->channels == 3 && scaled->height > 0 && scaled->width > 0);
  if (!whole) return 0;
  require((ImageInfo{whole->height, whole->width, whole->channels}) == *info);
  require(whole->pixels.size() == static_cast<std::size_t>(whole->height * whole->row_bytes()));
  // Some decoders do not write all pixels of a damaged file: then even the whole differs from time to time.
  require((region && *region == copy(crop(*whole, box))) ||
          decoded_or_none([&] { return decode_image(bytes, name, gray); }) != whole);
  return 0;
}

}  // namespace tandem
