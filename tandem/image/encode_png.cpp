#include "tandem/image/encode_png.h"

#include <png.h>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"

namespace tandem {

std::vector<uint8_t> encode_png(const Image& image) {
  constexpr int64_t max_side = 0x7FFFFFFF / 3;  // libpng counts the bytes of a row in 31 bits
  check(image.height > 0 && image.width > 0 && image.height <= max_side && image.width <= max_side,
        "[encode_png] expected sides of 1 to {}, got {}x{} (width x height)", max_side, image.width,
        image.height);
  expect(image.channels == 1 || image.channels == 3);
  expect(image.pixels.size() == size_t(image.height * image.row_bytes()));

  // libpng's simplified interface returns errors as text, without longjmp.
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = png_uint_32(image.width);
  png.height = png_uint_32(image.height);
  png.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  // Enough for incompressible data: zlib's worst case is slightly over the raw size, plus the PNG chunks.
  const size_t raw = image.pixels.size() + size_t(image.height);
  png_alloc_size_t size = raw + raw / 500 + 4096;
  std::vector<uint8_t> bytes(size);
  const int written =
      png_image_write_to_memory(&png, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr);
  check(written != 0, "[encode_png] {}x{} could not be encoded: {}", image.width, image.height,
        static_cast<const char*>(png.message));
  bytes.resize(size);
  bytes.shrink_to_fit();
  return bytes;
}

void save_png(const std::filesystem::path& path, const Image& image) {
  const std::vector<uint8_t> bytes = encode_png(image);
  write_file("save_png", path, std::as_bytes(std::span(bytes)));
}

}  // namespace tandem
