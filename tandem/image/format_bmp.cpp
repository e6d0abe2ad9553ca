// BMP: 16, 24 and 32 bits per pixel, and 1, 4 or 8 bits with a palette, the last two also in run-length
// encoding. Other kinds are rare and not supported.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/image/format.h"

namespace tandem {
namespace {

struct Header {
  int64_t pixel_offset = 0, width = 0, height = 0;
  bool top_down = false, run_length = false;
  uint32_t bits = 0;
  bool alpha = false;       // with 32 bits per pixel: the fourth byte is alpha
  uint32_t green_bits = 5;  // with 16 bits per pixel; red and blue have five
  int64_t palette_offset = 0, palette_entry_bytes = 0, palette_colors = 0;
};

Header parse_header(const EncodedImage& file) {
  const auto u16 = [&](int64_t at) {
    check(at + 2 <= int64_t(file.bytes.size()), "[decode] {}: the BMP is truncated in its header", file.name);
    return uint32_t(file.bytes[size_t(at)] | file.bytes[size_t(at) + 1] << 8);
  };
  const auto u32 = [&](int64_t at) { return u16(at) | u16(at + 2) << 16; };

  const uint32_t header_bytes = u32(14);
  Header header;
  header.pixel_offset = u32(10);
  header.palette_offset = 14 + int64_t(header_bytes);
  if (header_bytes == 12) {  // OS/2
    header.width = u16(18), header.height = u16(20), header.bits = u16(24);
    header.palette_entry_bytes = 3;
    header.palette_colors = header.bits <= 8 ? 1 << header.bits : 0;
    return header;
  }
  header.width = int32_t(u32(18)), header.height = int32_t(u32(22)), header.bits = u16(28);
  header.top_down = header.height < 0;
  header.height = std::abs(header.height);
  header.palette_entry_bytes = 4;
  const uint32_t colors = u32(46);
  header.palette_colors = header.bits > 8 ? 0 : colors == 0 ? 1 << header.bits : std::min(colors, 256u);

  constexpr uint32_t uncompressed = 0, rle_8 = 1, rle_4 = 2, bit_fields = 3;
  const uint32_t compression = u32(30);
  header.run_length =
      (compression == rle_8 && header.bits == 8) || (compression == rle_4 && header.bits == 4);
  check(!header.run_length || !header.top_down,
        "[decode] {}: expected run-length encoding from the bottom up", file.name);
  if (compression == bit_fields && header.bits == 32) {
    // Only the usual byte order is supported: blue, green, red, then alpha or padding.
    const uint32_t alpha_mask = header_bytes >= 56 ? u32(66) : 0;
    check(u32(54) == 0xFF0000 && u32(58) == 0xFF00 && u32(62) == 0xFF &&
              (alpha_mask == 0 || alpha_mask == 0xFF000000),
          "[decode] {}: BMP with an unusual channel order is not supported", file.name);
    header.alpha = alpha_mask != 0;
  } else if (compression == bit_fields && header.bits == 16) {
    const uint32_t green = u32(58);
    check((green == 0x7E0 && u32(54) == 0xF800 && u32(62) == 0x1F) ||
              (green == 0x3E0 && u32(54) == 0x7C00 && u32(62) == 0x1F),
          "[decode] {}: BMP with an unusual channel order is not supported", file.name);
    header.green_bits = green == 0x7E0 ? 6 : 5;
  } else {
    check(compression == uncompressed || header.run_length,
          "[decode] {}: compressed BMP (method {}) is not supported", file.name, compression);
  }
  return header;
}

Header read_header(const EncodedImage& file) {
  const Header header = parse_header(file);
  const uint32_t bits = header.bits;
  check(bits == 1 || bits == 4 || bits == 8 || bits == 16 || bits == 24 || bits == 32,
        "[decode] {}: expected a BMP of 1, 4, 8, 16, 24 or 32 bits per pixel, got {}", file.name, bits);
  check_size(file, header.width, header.height);
  return header;
}

using Palette = std::array<std::array<uint8_t, 3>, 256>;  // an index past the stored colors is black

Palette read_palette(const EncodedImage& file, const Header& header) {
  Palette palette{};
  check(header.palette_offset + header.palette_entry_bytes * header.palette_colors <=
            int64_t(file.bytes.size()),
        "[decode] {}: the BMP is truncated at {} bytes", file.name, file.bytes.size());
  for (int64_t i = 0; i < header.palette_colors; ++i) {
    const uint8_t* bgr = file.bytes.data() + header.palette_offset + i * header.palette_entry_bytes;
    palette[size_t(i)] = {bgr[2], bgr[1], bgr[0]};
  }
  return palette;
}

int channel_count(const Header& header, const Palette& palette) {
  const bool gray = header.bits <= 8 &&
                    std::ranges::all_of(palette, [](const auto& p) { return p[0] == p[1] && p[1] == p[2]; });
  return gray ? 1 : 3;
}

// The indices of run-length encoded pixels, from the bottom row up, one byte each. Pixels that are skipped
// have the index 0.
std::vector<uint8_t> read_runs(const EncodedImage& file, const Header& header) {
  std::vector<uint8_t> indices(size_t(header.width * header.height));
  size_t at = size_t(std::min<int64_t>(header.pixel_offset, int64_t(file.bytes.size())));
  const auto next = [&] {
    check(at < file.bytes.size(), "[decode] {}: the BMP is truncated at {} bytes", file.name,
          file.bytes.size());
    return file.bytes[at++];
  };
  const bool nibbles = header.bits == 4;
  int64_t x = 0, y = 0;
  const auto put = [&](uint8_t index) {
    if (x < header.width && y < header.height) indices[size_t(y * header.width + x)] = index;
    ++x;
  };
  const auto half = [](uint8_t byte, int i) { return uint8_t(i % 2 == 0 ? byte >> 4 : byte & 15); };
  while (true) {
    const int count = next();
    const uint8_t value = next();
    constexpr uint8_t end_of_row = 0, end = 1, move = 2;
    if (count > 0) {
      for (int i = 0; i < count; ++i) put(nibbles ? half(value, i) : value);
    } else if (value == end_of_row) {
      x = 0, ++y;
    } else if (value == end) {
      return indices;
    } else if (value == move) {
      x += next(), y += next();
    } else {  // as many pixels as they are, padded to an even number of bytes
      const int bytes = nibbles ? (value + 1) / 2 : value;
      for (int i = 0; i < bytes; ++i) {
        const uint8_t byte = next();
        if (!nibbles) put(byte);
        for (int j = 0; nibbles && j < 2 && 2 * i + j < value; ++j) put(half(byte, j));
      }
      if (bytes % 2 != 0) next();
    }
  }
}

Image decode_runs(const EncodedImage& file, const Header& header, const Palette& palette) {
  const int channels = channel_count(header, palette);
  check_memory(file, header.width * header.height * (1 + channels));
  const std::vector<uint8_t> indices = read_runs(file, header);
  Image image = make_image(header.height, header.width, channels);
  for (int64_t y = 0; y < image.height; ++y) {
    uint8_t* out = image.row(image.height - 1 - y);
    for (int64_t x = 0; x < image.width; ++x)
      out = std::copy_n(palette[indices[size_t(y * image.width + x)]].begin(), channels, out);
  }
  return image;
}

}  // namespace

StoredInfo read_bmp_info(const EncodedImage& file) {
  const Header header = read_header(file);
  return {header.height, header.width, channel_count(header, read_palette(file, header)), 1};
}

Image decode_bmp(const EncodedImage& file) {
  const Header header = read_header(file);
  if (header.run_length) return decode_runs(file, header, read_palette(file, header));
  const uint32_t bits = header.bits;
  const int64_t row_bytes = (header.width * int64_t(bits) + 31) / 32 * 4;
  const int64_t size = int64_t(file.bytes.size());
  check(header.pixel_offset + row_bytes * header.height <= size,
        "[decode] {}: the BMP is truncated at {} bytes", file.name, size);
  const Palette palette = read_palette(file, header);

  Image image = make_image(header.height, header.width, channel_count(header, palette));
  for (int64_t y = 0; y < image.height; ++y) {
    const int64_t stored_y = header.top_down ? y : image.height - 1 - y;
    const uint8_t* in = file.bytes.data() + header.pixel_offset + stored_y * row_bytes;
    uint8_t* out = image.row(y);
    for (int64_t x = 0; x < image.width; ++x) {
      if (bits <= 8) {
        const int64_t bit = x * bits;
        const uint32_t index = (uint32_t(in[bit / 8]) >> (8 - bits - bit % 8)) & ((1u << bits) - 1);
        out = std::copy_n(palette[index].begin(), image.channels, out);
      } else if (bits == 16) {
        const uint32_t pixel = uint32_t(in[2 * x] | in[2 * x + 1] << 8),
                       max_green = (1u << header.green_bits) - 1;
        *out++ = uint8_t((pixel >> (5 + header.green_bits) & 31) * 255 / 31);
        *out++ = uint8_t((pixel >> 5 & max_green) * 255 / max_green);
        *out++ = uint8_t((pixel & 31) * 255 / 31);
      } else {
        const uint8_t* bgr = in + x * (bits / 8);
        for (int c = 2; c >= 0; --c) *out++ = header.alpha ? over_white(bgr[c], bgr[3]) : bgr[c];
      }
    }
  }
  return image;
}

}  // namespace tandem
