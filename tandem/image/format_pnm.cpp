// PGM and PPM, plain (P2, P3) and raw (P5, P6), with a greatest value of up to 65535.
#include "tandem/core/check.h"
#include "tandem/image/format.h"

namespace tandem {
namespace {

// Reads the numbers of the header, and of the raster of a plain file; `#` begins a comment.
class Numbers {
 public:
  explicit Numbers(const EncodedImage& file) : file_(file) {}

  int64_t next(const char* what) {
    while (at_ < file_.bytes.size() && (is_space(file_.bytes[at_]) || file_.bytes[at_] == '#')) {
      if (file_.bytes[at_] == '#')
        while (at_ < file_.bytes.size() && file_.bytes[at_] != '\n') ++at_;
      else
        ++at_;
    }
    check(at_ < file_.bytes.size(), "[decode] {}: the file ends before the {}", file_.name, what);
    int64_t value = 0;
    const size_t begin = at_;
    for (; at_ < file_.bytes.size() && file_.bytes[at_] >= '0' && file_.bytes[at_] <= '9'; ++at_) {
      value = value * 10 + (file_.bytes[at_] - '0');
      check(value <= 0x7FFFFFFF, "[decode] {}: the {} is too large", file_.name, what);
    }
    check(at_ > begin, "[decode] {}: expected a number as the {}", file_.name, what);
    return value;
  }

  // A raw raster begins after exactly one blank.
  std::span<const uint8_t> raster() const {
    check(at_ < file_.bytes.size() && is_space(file_.bytes[at_]), "[decode] {}: no blank before the pixels",
          file_.name);
    return file_.bytes.subspan(at_ + 1);
  }

 private:
  static bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

  const EncodedImage& file_;
  size_t at_ = 2;  // after the "P5"
};

struct Header {
  bool plain;
  int channels;
  int64_t width, height, greatest;
};

Header read_header(const EncodedImage& file, Numbers& numbers) {
  const char kind = char(file.bytes[1]);
  Header header{.plain = kind == '2' || kind == '3', .channels = kind == '2' || kind == '5' ? 1 : 3};
  header.width = numbers.next("width");
  header.height = numbers.next("height");
  header.greatest = numbers.next("greatest value");
  check(header.greatest >= 1 && header.greatest <= 65535,
        "[decode] {}: expected a greatest value of 1 to 65535, got {}", file.name, header.greatest);
  check_size(file, header.width, header.height);
  return header;
}

}  // namespace

StoredInfo read_pnm_info(const EncodedImage& file) {
  Numbers numbers(file);
  const Header header = read_header(file, numbers);
  return {header.height, header.width, header.channels, 1};
}

Image decode_pnm(const EncodedImage& file) {
  Numbers numbers(file);
  const auto [plain, channels, width, height, greatest] = read_header(file, numbers);
  const auto to_8_bits = [&, most = greatest](int64_t value) {
    check(value <= most, "[decode] {}: a pixel of {} is above the greatest value, {}", file.name, value,
          most);
    return uint8_t((value * 255 + most / 2) / most);
  };

  // A file too short for its header is refused before memory is taken; a plain value needs two characters.
  const int64_t value_bytes = plain || greatest > 255 ? 2 : 1;
  const std::span<const uint8_t> raster = numbers.raster();
  check(width * height <= (int64_t(raster.size()) + plain) / (channels * value_bytes),
        "[decode] {}: cut short, {}x{} pixels need at least {} bytes, {} are there", file.name, width, height,
        width * height * channels * value_bytes - plain, raster.size());

  Image image = make_image(height, width, channels);
  const uint8_t* in = raster.data();
  for (uint8_t& out : image.pixels) {
    if (plain) {
      out = to_8_bits(numbers.next("last pixel"));
    } else if (greatest > 255) {
      out = to_8_bits(in[0] << 8 | in[1]);
      in += 2;
    } else {
      out = to_8_bits(*in++);
    }
  }
  return image;
}

}  // namespace tandem
