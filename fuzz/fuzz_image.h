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
#include "tandem/image/jpeg_frame.h"

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

// The result, or nothing for a DecodeError. Any other exception is a crash.
template <class F>
auto decoded_or_none(const F& f) -> std::optional<decltype(f())> {
  try {
    return f();
  } catch (const DecodeError&) {
    return std::nullopt;
  }
}

// Whether a damaged file always gives the same pixels. libde265 does not write all of them.
enum class Pixels { reproducible, arbitrary };

struct FuzzedImage {
  std::span<const std::uint8_t> bytes;
  LoadOptions options;
  PixelBox box;

  std::optional<Image> whole() const {
    return decoded_or_none([&] { return decode_image(bytes, "image", options); });
  }
  std::optional<Image> region() const {
    return decoded_or_none([&] { return decode_region(bytes, "image", box, options); });
  }

  // A part at a lower resolution has at least the size that is asked for, and at most that of the part.
  void check_scaled() const {
    const std::int64_t height = box.height / 3, width = box.width / 3;
    const auto scaled =
        decoded_or_none([&] { return decode_scaled(bytes, "image", box, height, width, options); });
    if (!scaled) return;
    require(scaled->height >= std::max<std::int64_t>(height, 1) && scaled->height <= box.height + 1);
    require(scaled->width >= std::max<std::int64_t>(width, 1) && scaled->width <= box.width + 1);
    require(!options.rgb || scaled->channels == 3);
    require(scaled->pixels.size() == static_cast<std::size_t>(scaled->height * scaled->row_bytes()));
  }

  void check_region(const Image& decoded, Pixels pixels) const {
    const auto part = region();
    if (pixels == Pixels::reproducible)
      require(part && *part == copy(crop(decoded, box)));
    else if (part)
      require(part->height == box.height && part->width == box.width);
  }
};

// A file of a format that has one of these signatures at `offset`; others are left to other targets. The
// bytes choose whether gray or RGB is asked for, and whether a region or a scaled part is decoded, which for
// most formats decodes the whole again.
inline int fuzz_image(std::span<const std::uint8_t> bytes, std::initializer_list<std::string_view> signatures,
                      std::size_t offset = 0, Pixels pixels = Pixels::reproducible) {
  const std::string_view text = text_of(bytes.data(), bytes.size());
  if (std::ranges::none_of(signatures, [&](std::string_view signature) {
        return text.substr(std::min(offset, text.size())).starts_with(signature);
      }))
    return 0;
  std::uint64_t selector = 0xcbf29ce484222325;
  for (const std::uint8_t byte : bytes) selector = (selector ^ byte) * 0x100000001b3;
  const auto choose = [&] {
    const bool choice = selector % 2 != 0;
    selector /= 2;
    return choice;
  };
  FuzzedImage image{.bytes = bytes, .options = {.max_pixels = 1 << 11, .rgb = choose()}};
  const auto info = decoded_or_none([&] { return read_image_info(bytes, "image", image.options); });
  const auto whole = image.whole();
  require(info || !whole);
  if (!info) return 0;
  require(info->height > 0 && info->width > 0 && info->height <= image.options.max_pixels / info->width);
  if (whole) {
    require((ImageInfo{whole->height, whole->width, whole->channels}) == *info);
    require(whole->pixels.size() == static_cast<std::size_t>(whole->height * whole->row_bytes()));
  }
  image.box = box_within(info->height, info->width, selector >> 8);
  const bool scaled = choose();
  if (const auto common = read_common_jpeg(bytes, image.options))
    require(common->height == info->height && common->width == info->width);
  if (scaled)
    image.check_scaled();
  else if (whole)
    image.check_region(*whole, pixels);
  else
    image.region();
  return 0;
}

}  // namespace tandem
