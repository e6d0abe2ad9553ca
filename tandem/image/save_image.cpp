#include "tandem/image/save_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include <jpeglib.h>

#include "tandem/core/check.h"
#include "tandem/core/write_file.h"
#include "tandem/image/encode_png.h"
#include "tandem/image/jpeg_errors.h"

namespace tandem {
namespace {

struct Compressor {
  jpeg_compress_struct info{};
  JpegErrors errors{};
  // libjpeg starts with this buffer and frees those that it takes afterwards, but for the last. One of its
  // own at the start would already be freed when it then runs out of memory.
  std::vector<unsigned char> first = std::vector<unsigned char>(1 << 16);
  unsigned char* bytes = first.data();
  unsigned long size = first.size();

  ~Compressor() {
    jpeg_destroy_compress(&info);
    if (bytes != first.data()) std::free(bytes);
  }
};

// longjmp skips destructors, so nothing in here owns anything. False on an error.
bool compress(Compressor& to, const Image& image, int quality) {
  if (setjmp(to.errors.jump) != 0) return false;
  jpeg_create_compress(&to.info);
  jpeg_mem_dest(&to.info, &to.bytes, &to.size);
  to.info.image_width = static_cast<JDIMENSION>(image.width);
  to.info.image_height = static_cast<JDIMENSION>(image.height);
  to.info.input_components = image.channels;
  to.info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&to.info);
  jpeg_set_quality(&to.info, quality, TRUE);
  for (int i = 0; i < to.info.num_components; ++i)
    to.info.comp_info[i].h_samp_factor = to.info.comp_info[i].v_samp_factor = 1;
  jpeg_start_compress(&to.info, TRUE);
  while (to.info.next_scanline < to.info.image_height) {
    auto* row = const_cast<JSAMPROW>(image.row(to.info.next_scanline));
    jpeg_write_scanlines(&to.info, &row, 1);
  }
  jpeg_finish_compress(&to.info);
  return true;
}

std::vector<uint8_t> encode_pnm(const Image& image) {
  check(image.height > 0 && image.width > 0, "[save_image] expected an image, got {}x{}", image.width,
        image.height);
  const std::string head =
      fmt::format("{}\n{} {}\n255\n", image.channels == 1 ? "P5" : "P6", image.width, image.height);
  std::vector<uint8_t> bytes(head.begin(), head.end());
  bytes.insert(bytes.end(), image.pixels.begin(), image.pixels.end());
  return bytes;
}

struct ImageFormat {
  std::string_view ending;
  std::vector<uint8_t> (*encode)(const Image& image);
};

constexpr ImageFormat formats[] = {
    {".png", encode_png},
    {".jpg", [](const Image& image) { return encode_jpeg(image); }},
    {".jpeg", [](const Image& image) { return encode_jpeg(image); }},
    {".ppm", [](const Image& image) { return encode_pnm(to_rgb(image)); }},
    {".pgm", [](const Image& image) { return encode_pnm(to_gray(image)); }},
};

const ImageFormat* format_of(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto* const found = std::ranges::find(formats, std::string_view(ending), &ImageFormat::ending);
  return found == std::end(formats) ? nullptr : found;
}

}  // namespace

std::vector<uint8_t> encode_jpeg(const Image& image, int quality) {
  constexpr int64_t max_side = JPEG_MAX_DIMENSION;
  check(image.height > 0 && image.width > 0 && image.height <= max_side && image.width <= max_side,
        "[encode_jpeg] expected sides of 1 to {}, got {}x{} (width x height)", max_side, image.width,
        image.height);
  check(quality >= 1 && quality <= 100, "[encode_jpeg] expected a quality from 1 to 100, got {}", quality);
  expect(image.channels == 1 || image.channels == 3);
  expect(image.pixels.size() == size_t(image.height * image.row_bytes()));
  Compressor compressor;
  compressor.info.err = jpeg_std_error(&compressor.errors.base);
  compressor.errors.base.error_exit = on_jpeg_error;
  check(compress(compressor, image, quality), "[encode_jpeg] {}x{} could not be encoded: {}", image.width,
        image.height, static_cast<const char*>(compressor.errors.text));
  return {compressor.bytes, compressor.bytes + compressor.size};
}

bool is_image_name(const std::filesystem::path& path) {
  return format_of(path) != nullptr;
}

std::string image_endings() {
  std::string text;
  for (const ImageFormat& format : formats) text += (text.empty() ? "" : ", ") + std::string(format.ending);
  return text;
}

void save_image(const std::filesystem::path& path, const Image& image) {
  const ImageFormat* const format = format_of(path);
  check(format != nullptr, "[save_image] {}: expected a name that ends in one of {}", path.string(),
        image_endings());
  const std::vector<uint8_t> bytes = format->encode(image);
  write_file("save_image", path, std::as_bytes(std::span(bytes)));
}

}  // namespace tandem
