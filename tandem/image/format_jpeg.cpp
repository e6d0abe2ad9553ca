// JPEG through libjpeg-turbo. The library reports errors by longjmp, so every call into it happens inside
// guarded(). The functions run by guarded() own nothing; memory is allocated outside, where exceptions are
// safe.
#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <jerror.h>
#include <jpeglib.h>

#include "tandem/core/check.h"
#include "tandem/image/exif.h"
#include "tandem/image/format.h"
#include "tandem/image/jpeg_errors.h"
#include "tandem/image/jpeg_frame.h"

namespace tandem {
namespace {

// For missing data libjpeg only warns and fills with gray; here that is an error. The warnings that are
// ignored do not affect pixels (some cameras pad their files).
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  if (code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM) return;
  on_jpeg_error(info);
}

// A malicious progressive file can request any number of passes over a large image; real files have about
// ten.
void on_progress(j_common_ptr info) {
  constexpr int max_scans = 500;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= max_scans) return;
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  std::snprintf(errors->text, sizeof errors->text, "more than %d scans", max_scans);
  std::longjmp(errors->jump, 1);
}

class Decompressor {
 public:
  explicit Decompressor(const EncodedImage& file) : file_(file) {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = on_jpeg_error;
    errors_.base.emit_message = on_message;
    progress_.progress_monitor = on_progress;
    guarded([this] { jpeg_create_decompress(&info_); });
  }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  ~Decompressor() { jpeg_destroy_decompress(&info_); }

  // Not in the constructor: if this fails, the destructor must run to free memory.
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
      fail("[decode] {}: the JPEG is damaged or truncated: {}", file_.name,
           static_cast<const char*>(errors_.text));
    step();
  }

 private:
  EncodedImage file_;
  jpeg_decompress_struct info_{};
  JpegErrors errors_{};
  jpeg_progress_mgr progress_{};
};

// In the first block of EXIF, else in the first one of XMP.
int orientation_of(const jpeg_decompress_struct& info) {
  constexpr std::string_view exif_name("Exif\0\0", 6), xmp_name("http://ns.adobe.com/xap/1.0/\0", 29);
  const auto find = [&](std::string_view name) -> std::optional<std::string_view> {
    for (auto* marker = info.marker_list; marker != nullptr; marker = marker->next)
      if (const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
          marker->marker == JPEG_APP0 + 1 && data.starts_with(name))
        return data;
    return std::nullopt;
  };
  std::optional<int> orientation;
  if (const auto exif = find(exif_name))
    orientation = find_exif_orientation({reinterpret_cast<const uint8_t*>(exif->data()), exif->size()});
  if (const auto xmp = orientation ? std::nullopt : find(xmp_name)) orientation = find_xmp_orientation(*xmp);
  return orientation.value_or(1);
}

// What the library keeps of a file with several scans: all coefficients, of two bytes each.
int64_t coefficient_bytes(jpeg_decompress_struct& info) {
  int64_t bytes = 0;
  for (int i = 0; i < info.num_components && jpeg_has_multiple_scans(&info); ++i)
    bytes += int64_t(info.comp_info[i].width_in_blocks) * info.comp_info[i].height_in_blocks * DCTSIZE2 *
             int64_t(sizeof(JCOEF));
  return bytes;
}

// `pixels` is the number of those that are decoded.
void check_decoder_memory(Decompressor& decompressor, const EncodedImage& file, int64_t pixels,
                          int orientation) {
  int64_t kept = 0;
  decompressor.guarded([&] { kept = coefficient_bytes(decompressor.info()); });
  const int channels = file.rgb || decompressor.info().jpeg_color_space != JCS_GRAYSCALE ? 3 : 1;
  check_memory(file, kept + pixels * channels * (orientation == 1 ? 1 : 2));
}

// CMYK as Adobe writes it, where 255 is no ink. PIL and browsers assume this for every CMYK JPEG.
void rgb_from_inverted_cmyk(const uint8_t* cmyk, uint8_t* rgb, int64_t width) {
  for (int64_t x = 0; x < width; ++x, cmyk += 4, rgb += 3)
    for (int c = 0; c < 3; ++c) rgb[c] = uint8_t((cmyk[c] * cmyk[3] + 127) / 255);
}

// The fields of the file header that determine how to decode.
struct Header {
  int64_t height, width;
  bool gray, cmyk;
  int orientation;
};

Header read_header(Decompressor& decompressor, const EncodedImage& file) {
  decompressor.read_header();
  const jpeg_decompress_struct& info = decompressor.info();
  check_size(file, info.image_width, info.image_height);
  return {info.image_height, info.image_width, info.jpeg_color_space == JCS_GRAYSCALE,
          info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK, orientation_of(info)};
}

void set_output(jpeg_decompress_struct& info, const Header& header, bool rgb, bool smooth_chroma) {
  info.out_color_space = header.gray && !rgb ? JCS_GRAYSCALE : header.cmyk ? JCS_CMYK : JCS_RGB;
  // Smoothing would interpolate missing coefficients from neighboring blocks, which a box may not include.
  info.do_block_smoothing = FALSE;
  info.do_fancy_upsampling = smooth_chroma ? TRUE : FALSE;  // interpolate chroma, or repeat it
}

// The numerator, over 8, of the smallest scale at which a box of this size (as stored) has at least the given
// size. Only scales with SIMD code in libjpeg-turbo: the others take as long as the next larger one.
unsigned scale_for(int64_t height, int64_t width, int64_t min_height, int64_t min_width) {
  if (min_height <= 0 || min_width <= 0) return 8;
  for (const unsigned eighths : {1u, 2u, 4u})
    if (height * eighths / 8 >= min_height && width * eighths / 8 >= min_width) return eighths;
  return 8;
}

// Cropping before color conversion is exact for the usual chroma subsampling: the first component has all
// pixels, the others have them or every second (horizontally also every fourth) one. Files with other factors
// are decoded completely.
bool can_crop(const jpeg_decompress_struct& info) {
  const int max_h = info.max_h_samp_factor, max_v = info.max_v_samp_factor;
  const jpeg_component_info& first = info.comp_info[0];
  if (max_h == 3 || max_v > 2 || first.h_samp_factor != max_h || first.v_samp_factor != max_v) return false;
  for (int i = 1; i < info.num_components; ++i)
    if (max_h % info.comp_info[i].h_samp_factor != 0 || max_v % info.comp_info[i].v_samp_factor != 0)
      return false;
  return true;
}

// A truncated file lacks the end marker, whichever rows were read. The search runs backwards because the
// marker is normally at the end. (A file with several scans has been read to its end before the first row.)
bool has_end_marker(jpeg_decompress_struct& info) {
  if (jpeg_has_multiple_scans(&info) || jpeg_input_complete(&info) || info.unread_marker == JPEG_EOI)
    return true;
  const JOCTET* rest = info.src->next_input_byte;
  for (size_t i = info.src->bytes_in_buffer; i >= 2; --i)
    if (rest[i - 2] == 0xFF && rest[i - 1] == JPEG_EOI) return true;
  return false;
}

// Decodes the box from a decompressor that is already started.
Image read_box(Decompressor& decompressor, const Header& header, const PixelBox& box, Image memory = {}) {
  jpeg_decompress_struct& info = decompressor.info();
  const int64_t end = box.y + box.height;
  // Chroma is interpolated between neighbors, so one more column is needed on each side, and an even number
  // of columns.
  constexpr int64_t margin = 2;
  JDIMENSION left = 0, columns = info.output_width;
  if (can_crop(info)) {
    left = JDIMENSION(std::max<int64_t>(box.x - margin, 0));
    columns =
        JDIMENSION(std::min<int64_t>((box.x + box.width + margin + 1) / 2 * 2, info.output_width)) - left;
  }
  if (columns < info.output_width) decompressor.guarded([&] { jpeg_crop_scanline(&info, &left, &columns); });
  const int stored_channels = info.output_components;
  const bool direct = !header.cmyk && columns == JDIMENSION(box.width);
  Image image = make_image(box.height, box.width, header.cmyk ? 3 : stored_channels, std::move(memory));

  // Up to 16 rows per call, as many as the library has decoded. They go directly into the image where no
  // conversion is needed.
  constexpr int64_t max_rows = 16;
  const int64_t row_bytes = int64_t(columns) * stored_channels;
  std::vector<uint8_t> buffer(direct ? 0 : size_t(max_rows * row_bytes));
  decompressor.guarded([&] {
    if (box.y > 0 && can_crop(info)) jpeg_skip_scanlines(&info, JDIMENSION(box.y));
    while (int64_t(info.output_scanline) < end) {
      const int64_t first = info.output_scanline, y = first - box.y;
      JSAMPROW rows[max_rows];
      const int64_t requested = y < 0 ? 1 : std::min(max_rows, end - first);
      for (int64_t i = 0; i < requested; ++i)
        rows[i] = direct ? image.row(std::max<int64_t>(y, 0) + i) : buffer.data() + i * row_bytes;
      const int64_t received = jpeg_read_scanlines(&info, rows, JDIMENSION(requested));
      if (direct || y < 0) continue;
      for (int64_t i = 0; i < received; ++i) {
        const uint8_t* from = rows[i] + (box.x - int64_t(left)) * stored_channels;
        if (header.cmyk)
          rgb_from_inverted_cmyk(from, image.row(y + i), box.width);
        else
          std::memcpy(image.row(y + i), from, size_t(image.row_bytes()));
      }
    }
  });
  return image;
}

// Gray, or YCbCr with chroma 4:4:4, 4:2:2 or 4:2:0, in one scan.
bool is_common(const jpeg_decompress_struct& info) {
  const auto has_factors = [&](int component, int h, int v) {
    return info.comp_info[component].h_samp_factor == h && info.comp_info[component].v_samp_factor == v;
  };
  if (info.progressive_mode || info.arith_code || info.data_precision != 8 ||
      info.comps_in_scan != info.num_components)
    return false;
  if (info.num_components == 1) return info.jpeg_color_space == JCS_GRAYSCALE && has_factors(0, 1, 1);
  return info.num_components == 3 && info.jpeg_color_space == JCS_YCbCr && has_factors(1, 1, 1) &&
         has_factors(2, 1, 1) && (has_factors(0, 1, 1) || has_factors(0, 2, 1) || has_factors(0, 2, 2));
}

// Whether the frame header is that of a baseline file, among segments that libjpeg has read.
bool is_baseline(std::span<const uint8_t> bytes) {
  constexpr int baseline = 0xC0, huffman_tables = 0xC4, other_frames = 0xCF, end_of_segments = 0xDA;
  for (size_t at = 2; at + 4 <= bytes.size();) {
    if (bytes[at] != 0xFF) return false;
    const int marker = bytes[at + 1];
    if (marker == baseline) return true;
    if (marker == 0xFF) {  // padding
      ++at;
      continue;
    }
    if ((marker < other_frames && marker != huffman_tables) || marker == end_of_segments) return false;
    at += 2 + size_t(bytes[at + 2]) * 256 + bytes[at + 3];
  }
  return false;
}

// Whether the compressed data contain no marker but the restarts that the header promises, up to the end
// marker.
bool is_whole_scan(const jpeg_decompress_struct& info) {
  const int64_t mcu_width = DCTSIZE * info.max_h_samp_factor, mcu_height = DCTSIZE * info.max_v_samp_factor;
  const int64_t mcus =
      (info.image_width + mcu_width - 1) / mcu_width * ((info.image_height + mcu_height - 1) / mcu_height);
  const int64_t restarts =
      info.restart_interval > 0 ? (mcus + info.restart_interval - 1) / info.restart_interval - 1 : 0;
  const uint8_t* at = info.src->next_input_byte;
  const uint8_t* const end = at + info.src->bytes_in_buffer;
  for (int64_t seen = 0; at < end;) {
    at = static_cast<const uint8_t*>(std::memchr(at, 0xFF, size_t(end - at)));
    if (at == nullptr || end - at < 2) return false;
    const int marker = at[1];
    at += 2;
    if (marker == 0) continue;
    if (marker == JPEG_EOI) return seen == restarts;
    if (marker != JPEG_RST0 + seen % 8 || ++seen > restarts) return false;
  }
  return false;
}

}  // namespace

std::optional<ImageInfo> read_common_jpeg(std::span<const uint8_t> bytes, const LoadOptions& options) try {
  if (bytes.size() < 3 || bytes[0] != 0xFF || bytes[1] != 0xD8) return std::nullopt;
  const EncodedImage file{bytes, "", options.max_pixels};
  Decompressor decompressor(file);
  const Header header = read_header(decompressor, file);
  if (header.orientation != 1 || !is_common(decompressor.info()) || !is_baseline(bytes) ||
      !is_whole_scan(decompressor.info()))
    return std::nullopt;
  return ImageInfo{header.height, header.width, header.gray ? 1 : 3};
} catch (const Error&) {
  return std::nullopt;
}

StoredInfo read_jpeg_info(const EncodedImage& file) {
  Decompressor decompressor(file);
  const Header header = read_header(decompressor, file);
  return {header.height, header.width, header.gray ? 1 : 3, header.orientation};
}

Image decode_jpeg(const EncodedImage& file) {
  Decompressor decompressor(file);
  const Header header = read_header(decompressor, file);
  jpeg_decompress_struct& info = decompressor.info();
  check_decoder_memory(decompressor, file, header.width * header.height, header.orientation);
  set_output(info, header, file.rgb, !file.plain_chroma);
  decompressor.guarded([&] { jpeg_start_decompress(&info); });
  Image image = read_box(decompressor, header, {0, 0, header.width, header.height});
  decompressor.guarded([&] { jpeg_finish_decompress(&info); });
  return apply_orientation(std::move(image), header.orientation);
}

Image decode_jpeg_box(const EncodedImage& file, const PixelBox& box, int64_t min_height, int64_t min_width,
                      Image memory) {
  Decompressor decompressor(file);
  const Header header = read_header(decompressor, file);
  const bool swapped = swaps_axes(header.orientation);
  check_box(box, swapped ? header.width : header.height, swapped ? header.height : header.width);
  PixelBox stored = stored_box(box, header.height, header.width, header.orientation);

  check_decoder_memory(decompressor, file, box.width * box.height, header.orientation);
  jpeg_decompress_struct& info = decompressor.info();
  set_output(info, header, file.rgb, !file.plain_chroma && (min_height <= 0 || min_width <= 0));
  const unsigned scale = scale_for(box.height, box.width, min_height, min_width);
  info.scale_num = scale, info.scale_denom = 8;
  decompressor.guarded([&] { jpeg_start_decompress(&info); });
  const auto scaled = [&](int64_t from, int64_t length, int64_t& begin, int64_t& size) {
    begin = from * scale / 8;
    size = ((from + length) * scale + 7) / 8 - begin;
  };
  scaled(stored.x, stored.width, stored.x, stored.width);
  scaled(stored.y, stored.height, stored.y, stored.height);
  Image image = read_box(decompressor, header, stored, std::move(memory));
  bool ended = false;
  decompressor.guarded([&] {
    ended = info.output_scanline == info.output_height ? jpeg_finish_decompress(&info) : has_end_marker(info);
  });
  check(ended, "[decode] {}: the JPEG is damaged or truncated: Premature end of JPEG file", file.name);
  return apply_orientation(std::move(image), header.orientation);
}

}  // namespace tandem
