// PBM, PGM and PPM, plain text (P1, P2, P3) and binary (P4, P5, P6), with a maximum value of up to 65535.
#include <fmt/format.h>

#include <string_view>

#include "tandem/core/check.h"
#include "tandem/image/format.h"
#include "tandem/image/ppm_view.h"

namespace tandem {
namespace {

// Reads the numbers of the header, and the pixels of a plain-text file; `#` begins a comment.
class NumberReader {
 public:
  explicit NumberReader(const EncodedImage& file) : file_(file) {}

  int64_t next(const char* what) {
    skip_blanks(what);
    int64_t value = 0;
    const size_t begin = at_;
    for (; at_ < file_.bytes.size() && file_.bytes[at_] >= '0' && file_.bytes[at_] <= '9'; ++at_) {
      value = value * 10 + (file_.bytes[at_] - '0');
      check(value <= 0x7FFFFFFF, "[decode] {}: the {} is too large", file_.name, what);
    }
    check(at_ > begin, "[decode] {}: expected a number as the {}", file_.name, what);
    return value;
  }

  // A digit of a plain-text bitmap; they need no blanks between them.
  bool next_bit(const char* what) {
    skip_blanks(what);
    const uint8_t digit = file_.bytes[at_++];
    check(digit == '0' || digit == '1', "[decode] {}: expected 0 or 1 as a pixel", file_.name);
    return digit == '1';
  }

  // Binary pixels begin after exactly one whitespace character.
  std::span<const uint8_t> raster() const {
    check(at_ < file_.bytes.size() && is_space(file_.bytes[at_]),
          "[decode] {}: expected whitespace before the pixels", file_.name);
    return file_.bytes.subspan(at_ + 1);
  }

 private:
  static bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

  void skip_blanks(const char* what) {
    while (at_ < file_.bytes.size() && (is_space(file_.bytes[at_]) || file_.bytes[at_] == '#')) {
      if (file_.bytes[at_] == '#')
        while (at_ < file_.bytes.size() && file_.bytes[at_] != '\n') ++at_;
      else
        ++at_;
    }
    check(at_ < file_.bytes.size(), "[decode] {}: the file ends before the {}", file_.name, what);
  }

  const EncodedImage& file_;
  size_t at_ = 2;  // after the "P5"
};

struct Header {
  bool plain, bitmap;
  int channels;
  int64_t width, height, max_value;
};

Header read_header(const EncodedImage& file, NumberReader& numbers) {
  const char kind = char(file.bytes[1]);
  Header header{.plain = kind <= '3',
                .bitmap = kind == '1' || kind == '4',
                .channels = kind == '3' || kind == '6' ? 3 : 1};
  header.width = numbers.next("width");
  header.height = numbers.next("height");
  header.max_value = header.bitmap ? 1 : numbers.next("maximum value");
  check(header.max_value >= 1 && header.max_value <= 65535,
        "[decode] {}: expected a maximum value of 1 to 65535, got {}", file.name, header.max_value);
  check_size(file, header.width, header.height);
  return header;
}

// 1 is black. Rows of the binary form are padded to whole bytes.
Image decode_bitmap(const EncodedImage& file, NumberReader& numbers, const Header& header) {
  const int64_t row_bytes = (header.width + 7) / 8;
  const std::span<const uint8_t> raster = numbers.raster();
  const int64_t needed = header.height * (header.plain ? header.width : row_bytes);
  check(needed <= int64_t(raster.size()),
        "[decode] {}: truncated: expected at least {} bytes of pixels, got {}", file.name, needed,
        raster.size());
  Image image = make_image(header.height, header.width, 1);
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x) {
      const bool black = header.plain ? numbers.next_bit("last pixel")
                                      : (raster[size_t(y * row_bytes + x / 8)] >> (7 - x % 8) & 1) != 0;
      image.at(y, x) = black ? 0 : 255;
    }
  return image;
}

}  // namespace

StoredInfo read_pnm_info(const EncodedImage& file) {
  NumberReader numbers(file);
  const Header header = read_header(file, numbers);
  return {header.height, header.width, header.channels, 1};
}

Image decode_pnm(const EncodedImage& file) {
  NumberReader numbers(file);
  const Header header = read_header(file, numbers);
  if (header.bitmap) return decode_bitmap(file, numbers, header);
  const auto [plain, bitmap, channels, width, height, max_value] = header;
  const auto to_8_bits = [&, max = max_value](int64_t value) {
    check(value <= max, "[decode] {}: a pixel of {} is above the maximum value, {}", file.name, value, max);
    return uint8_t((value * 255 + max / 2) / max);
  };

  // A file too short for its header is rejected before memory is allocated. A plain-text value needs at least
  // two characters.
  const int64_t value_bytes = plain || max_value > 255 ? 2 : 1;
  const std::span<const uint8_t> raster = numbers.raster();
  check(width * height <= (int64_t(raster.size()) + plain) / (channels * value_bytes),
        "[decode] {}: truncated: expected at least {} bytes of pixels, got {}", file.name,
        width * height * channels * value_bytes - plain, raster.size());

  Image image = make_image(height, width, channels);
  const uint8_t* in = raster.data();
  for (uint8_t& out : image.pixels) {
    if (plain) {
      out = to_8_bits(numbers.next("last pixel"));
    } else if (max_value > 255) {
      out = to_8_bits(in[0] << 8 | in[1]);
      in += 2;
    } else {
      out = to_8_bits(*in++);
    }
  }
  return image;
}

std::optional<ImageView> view_ppm(std::span<const uint8_t> bytes, int64_t max_pixels) try {
  if (bytes.size() < 3 || bytes[0] != 'P' || bytes[1] != '6') return std::nullopt;
  if (std::string_view(" \t\r\n#").find(char(bytes[2])) == std::string_view::npos) return std::nullopt;
  const EncodedImage file{.bytes = bytes, .name = "", .max_pixels = max_pixels};
  NumberReader numbers(file);
  const Header header = read_header(file, numbers);
  const std::span<const uint8_t> raster = numbers.raster();
  if (header.max_value != 255 || header.width * header.height > int64_t(raster.size()) / 3)
    return std::nullopt;
  return ImageView(raster.data(), header.height, header.width, 3, 3 * header.width);
} catch (const Error&) {
  return std::nullopt;
}

std::string encode_ppm(const ImageView& image) {
  expect(image.channels == 3);
  std::string bytes = fmt::format("P6\n{} {}\n255\n", image.width, image.height);
  bytes.reserve(bytes.size() + size_t(3 * image.width * image.height));
  for (int64_t y = 0; y < image.height; ++y)
    bytes.append(reinterpret_cast<const char*>(image.row(y)), size_t(3 * image.width));
  return bytes;
}

}  // namespace tandem
