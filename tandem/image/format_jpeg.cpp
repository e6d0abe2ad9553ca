// JPEG through libjpeg-turbo. The library reports errors by longjmp, so every call into it happens inside
// guarded(), whose steps own nothing; memory is taken between the steps, where exceptions are safe.
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include <jerror.h>
#include <jpeglib.h>

#include "tandem/core/check.h"
#include "tandem/image/exif.h"
#include "tandem/image/format.h"

namespace tandem {
namespace {

struct ErrorManager {
  jpeg_error_mgr base;  // first: libjpeg hands back a pointer to this member
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void on_error(j_common_ptr info) {
  auto* errors = reinterpret_cast<ErrorManager*>(info->err);
  errors->base.format_message(info, errors->text);
  std::longjmp(errors->jump, 1);
}

// libjpeg fills what is missing with grey and goes on with a warning; to us, lost picture data is an error.
// The exceptions leave the picture whole (some cameras pad their files).
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  if (code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM) return;
  on_error(info);
}

// A progressive file may ask for any number of passes over a large picture; real ones have about ten.
void on_progress(j_common_ptr info) {
  constexpr int most_scans = 500;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= most_scans) return;
  auto* errors = reinterpret_cast<ErrorManager*>(info->err);
  std::snprintf(errors->text, sizeof errors->text, "more than %d scans", most_scans);
  std::longjmp(errors->jump, 1);
}

class Decompressor {
 public:
  explicit Decompressor(const EncodedImage& file) : file_(file) {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = on_error;
    errors_.base.emit_message = on_message;
    progress_.progress_monitor = on_progress;
    guarded([this] { jpeg_create_decompress(&info_); });
  }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  ~Decompressor() { jpeg_destroy_decompress(&info_); }

  // Not in the constructor: once this fails there is memory for the destructor to free.
  void read_header() {
    guarded([this] {
      info_.progress = &progress_;
      jpeg_mem_src(&info_, file_.bytes.data(), static_cast<unsigned long>(file_.bytes.size()));
      jpeg_save_markers(&info_, JPEG_APP0 + 1, 0xFFFF);
      jpeg_read_header(&info_, TRUE);
    });
  }

  jpeg_decompress_struct& info() { return info_; }

  // Runs a step that calls libjpeg. longjmp skips destructors, so nothing inside may own anything.
  template <class Step>
  void guarded(const Step& step) {
    if (setjmp(errors_.jump) != 0)
      fail("[decode] {}: the JPEG is damaged or cut short: {}", file_.name,
           static_cast<const char*>(errors_.text));
    step();
  }

 private:
  EncodedImage file_;
  jpeg_decompress_struct info_{};
  ErrorManager errors_{};
  jpeg_progress_mgr progress_{};
};

int orientation_of(const jpeg_decompress_struct& info) {
  for (auto* marker = info.marker_list; marker != nullptr; marker = marker->next)
    if (marker->marker == JPEG_APP0 + 1 && marker->data_length >= 6 &&
        std::memcmp(marker->data, "Exif\0\0", 6) == 0)
      return exif_orientation({marker->data, marker->data_length});
  return 1;
}

// CMYK as Adobe writes it, 255 meaning no ink: what PIL and browsers assume of every CMYK JPEG.
void rgb_from_inverted_cmyk(const uint8_t* cmyk, uint8_t* rgb, int64_t width) {
  for (int64_t x = 0; x < width; ++x, cmyk += 4, rgb += 3)
    for (int c = 0; c < 3; ++c) rgb[c] = uint8_t((cmyk[c] * cmyk[3] + 127) / 255);
}

}  // namespace

Image decode_jpeg(const EncodedImage& file) {
  Decompressor decompressor(file);
  decompressor.read_header();
  jpeg_decompress_struct& info = decompressor.info();
  check_size(file, info.image_width, info.image_height);
  const int orientation = orientation_of(info);  // before the end of decoding frees the markers

  const bool grey = info.jpeg_color_space == JCS_GRAYSCALE;
  const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = grey ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
  Image image = make_image(info.image_height, info.image_width, grey ? 1 : 3);
  std::vector<uint8_t> cmyk_row(cmyk ? size_t(image.width) * 4 : 0);
  decompressor.guarded([&] {
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      uint8_t* out = image.row(info.output_scanline);
      JSAMPROW row = cmyk ? cmyk_row.data() : out;
      jpeg_read_scanlines(&info, &row, 1);
      if (cmyk) rgb_from_inverted_cmyk(row, out, image.width);
    }
    jpeg_finish_decompress(&info);
  });
  return upright(std::move(image), orientation);
}

}  // namespace tandem
