// PNG through libpng. Like libjpeg it reports errors by longjmp, so its functions are called inside
// guarded(), and the functions run by guarded() own nothing.
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include <png.h>

#include "tandem/core/check.h"
#include "tandem/image/exif.h"
#include "tandem/image/format.h"
#include "tandem/image/png_orientation.h"

namespace tandem {
namespace {

class PngReader {
 public:
  explicit PngReader(const EncodedImage& file) : file_(file), rest_(file.bytes) {
    guarded([this] {
      png_ =
          png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, [](png_structp, png_const_charp) {});
      info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    });
    if (info_ == nullptr) release();
    check(info_ != nullptr, "[decode] {}: out of memory while reading the PNG", file_.name);
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { release(); }

  png_structp png() { return png_; }
  png_infop info() { return info_; }

  // Runs a step that calls libpng. longjmp skips destructors, so nothing inside may own anything.
  template <class Step>
  void guarded(const Step& step) {
    if (setjmp(jump_) != 0)
      fail("[decode] {}: the PNG is damaged or truncated: {}", file_.name, static_cast<const char*>(text_));
    step();
  }

  static void on_read(png_structp png, png_bytep out, size_t count) {
    auto& rest = static_cast<PngReader*>(png_get_io_ptr(png))->rest_;
    if (count > rest.size()) png_error(png, "the file ends early");
    std::memcpy(out, rest.data(), count);
    rest = rest.subspan(count);
  }

 private:
  [[noreturn]] static void on_error(png_structp png, png_const_charp text) {
    auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
    std::snprintf(reader->text_, sizeof reader->text_, "%s", text);
    std::longjmp(reader->jump_, 1);
  }
  void release() { png_destroy_read_struct(&png_, &info_, nullptr); }

  EncodedImage file_;
  std::span<const uint8_t> rest_;  // not read yet
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_{};
  char text_[200] = {};
};

void read_header(PngReader& reader, const EncodedImage& file) {
  png_structp png = reader.png();
  reader.guarded([&] {
    png_set_read_fn(png, &reader, PngReader::on_read);
    // check_size() limits the number of pixels, so libpng's own limits are set to what the format allows.
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    // libpng skips text, color profiles and EXIF: there is no need to unpack them.
    constexpr png_byte unused[] = "iCCP\0iTXt\0tEXt\0zTXt\0sPLT\0hIST\0eXIf";
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, unused, sizeof unused / 5);
    png_read_info(png, reader.info());
  });
  check_size(file, png_get_image_width(png, reader.info()), png_get_image_height(png, reader.info()));
}

}  // namespace

StoredInfo read_png_info(const EncodedImage& file) {
  PngReader reader(file);
  read_header(reader, file);
  const bool color = (png_get_color_type(reader.png(), reader.info()) & PNG_COLOR_MASK_COLOR) != 0;
  return {png_get_image_height(reader.png(), reader.info()), png_get_image_width(reader.png(), reader.info()),
          color ? 3 : 1, png_orientation(file.bytes)};
}

Image decode_png(const EncodedImage& file) {
  PngReader reader(file);
  read_header(reader, file);
  png_structp png = reader.png();
  png_infop info = reader.info();
  check_unpacked(file, int64_t(png_get_image_height(png, info)) * int64_t(png_get_rowbytes(png, info) + 1));

  int passes = 1;
  reader.guarded([&] {
    png_set_expand(png);    // palette to RGB, 1, 2 and 4 bits to 8, a transparent color to alpha
    png_set_scale_16(png);  // rounds, where png_set_strip_16 would truncate
    passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
  });
  const int stored_channels = png_get_channels(png, info);
  const bool alpha = stored_channels == 2 || stored_channels == 4;
  const int64_t height = png_get_image_height(png, info), width = png_get_image_width(png, info);
  const int channels = stored_channels - alpha;
  const int64_t stored_row = width * stored_channels;
  expect(png_get_rowbytes(png, info) == size_t(stored_row));
  const int orientation = png_orientation(file.bytes);
  // An interlaced file is read in passes over all rows, any other row by row: alpha is not kept.
  const bool in_place = passes > 1 || !alpha;
  check_memory(file, height * ((in_place ? stored_row : width * channels) +
                               (orientation == 1 ? 0 : width * channels)));
  Image image{height, width, channels, {}};
  image.pixels.resize(size_t(height * (in_place ? stored_row : width * channels)));
  std::vector<uint8_t> row(in_place ? 0 : size_t(stored_row));

  reader.guarded([&] {
    for (int pass = 0; pass < passes; ++pass)
      for (int64_t y = 0; y < height; ++y) {
        png_read_row(png, in_place ? image.pixels.data() + y * stored_row : row.data(), nullptr);
        if (!in_place) blend_over_white(row.data(), width, channels, image.row(y));
      }
    png_read_end(png, info);
  });
  if (in_place && alpha) blend_over_white(image.pixels, channels);
  return apply_orientation(std::move(image), orientation);
}

}  // namespace tandem
