// TIFF through libtiff (4.5 or later), where the build has its header and the machine the library: the first
// page, with any compression libtiff knows. The library is opened when the first TIFF is met.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/shared_library.h"
#include "tandem/image/exif.h"
#include "tandem/image/format.h"

#if TANDEM_HAS_TIFF
#include <tiffio.h>
#endif

namespace tandem {

#if TANDEM_HAS_TIFF
namespace {

struct Libtiff {
  decltype(TIFFOpenOptionsAlloc)* open_options_alloc;
  decltype(TIFFOpenOptionsFree)* open_options_free;
  decltype(TIFFOpenOptionsSetMaxSingleMemAlloc)* set_max_alloc;
  decltype(TIFFOpenOptionsSetErrorHandlerExtR)* set_error_handler;
  decltype(TIFFOpenOptionsSetWarningHandlerExtR)* set_warning_handler;
  decltype(TIFFClientOpenExt)* client_open;
  decltype(TIFFClose)* close;
  decltype(TIFFGetField)* get_field;
  decltype(TIFFGetFieldDefaulted)* get_field_defaulted;
  decltype(TIFFSetField)* set_field;
  decltype(TIFFIsTiled)* is_tiled;
  decltype(TIFFScanlineSize64)* scanline_size;
  decltype(TIFFReadScanline)* read_scanline;
  decltype(TIFFRGBAImageOK)* rgba_image_ok;
  decltype(TIFFReadRGBAImageOriented)* read_rgba;
  bool found = false;

  Libtiff() {
    SharedLibrary library({.name = "libtiff", .files = {"libtiff.so.6"}, .folders = {}});
    found = library.provides([&] { find_functions(library); });
  }

 private:
  void find_functions(SharedLibrary& library) {
    open_options_alloc = library.function<decltype(open_options_alloc)>("TIFFOpenOptionsAlloc");
    open_options_free = library.function<decltype(open_options_free)>("TIFFOpenOptionsFree");
    set_max_alloc = library.function<decltype(set_max_alloc)>("TIFFOpenOptionsSetMaxSingleMemAlloc");
    set_error_handler = library.function<decltype(set_error_handler)>("TIFFOpenOptionsSetErrorHandlerExtR");
    set_warning_handler =
        library.function<decltype(set_warning_handler)>("TIFFOpenOptionsSetWarningHandlerExtR");
    client_open = library.function<decltype(client_open)>("TIFFClientOpenExt");
    close = library.function<decltype(close)>("TIFFClose");
    get_field = library.function<decltype(get_field)>("TIFFGetField");
    get_field_defaulted = library.function<decltype(get_field_defaulted)>("TIFFGetFieldDefaulted");
    set_field = library.function<decltype(set_field)>("TIFFSetField");
    is_tiled = library.function<decltype(is_tiled)>("TIFFIsTiled");
    scanline_size = library.function<decltype(scanline_size)>("TIFFScanlineSize64");
    read_scanline = library.function<decltype(read_scanline)>("TIFFReadScanline");
    rgba_image_ok = library.function<decltype(rgba_image_ok)>("TIFFRGBAImageOK");
    read_rgba = library.function<decltype(read_rgba)>("TIFFReadRGBAImageOriented");
  }
};

const Libtiff& libtiff() {
  static const Libtiff functions;
  return functions;
}

// An open file in memory. Reading beyond its end gives fewer bytes, which libtiff reports as an error.
class TiffReader {
 public:
  explicit TiffReader(const EncodedImage& file) : file_(file) {
    if (!lib_.found) fail_no_decoder(file, "TIFF", "on this machine: libtiff.so.6 is not installed");
    TIFFOpenOptions* const options = lib_.open_options_alloc();
    expect(options != nullptr);
    // A strip or tile of the largest image that is allowed, with 16 bits and four channels.
    const int64_t max_bytes = std::clamp<int64_t>(file.max_pixels, 1 << 23, int64_t(1) << 40) * 8;
    lib_.set_max_alloc(options, tmsize_t(max_bytes));
    lib_.set_error_handler(options, on_message, this);
    lib_.set_warning_handler(options, on_warning, this);
    tiff_ = lib_.client_open("memory", "r", this, on_read, on_write, on_seek, on_close, on_size, on_map,
                             on_unmap, options);
    lib_.open_options_free(options);
    if (tiff_ == nullptr) fail_damaged();
  }
  TiffReader(const TiffReader&) = delete;
  TiffReader& operator=(const TiffReader&) = delete;
  ~TiffReader() { lib_.close(tiff_); }

  TIFF* tiff() const { return tiff_; }
  const Libtiff& lib() const { return lib_; }

  template <class T>
  T field(uint32_t tag, T otherwise) const {
    T value{};
    return lib_.get_field_defaulted(tiff_, tag, &value) == 1 ? value : otherwise;
  }

  [[noreturn]] void fail_damaged() const {
    fail("[decode] {}: the TIFF is damaged or truncated{}{}", file_.name, text_[0] == 0 ? "" : ": ",
         static_cast<const char*>(text_));
  }

  // Whether a codec reported missing or invalid data as a warning only.
  bool has_lost_pixels() const { return lost_pixels_; }

 private:
  static TiffReader& self(void* handle) { return *static_cast<TiffReader*>(handle); }

  static tmsize_t on_read(thandle_t handle, void* out, tmsize_t count) {
    const auto bytes = self(handle).file_.bytes;
    uint64_t& at = self(handle).position_;
    if (count <= 0 || at >= bytes.size()) return 0;
    const size_t got = std::min<size_t>(size_t(count), bytes.size() - size_t(at));
    std::memcpy(out, bytes.data() + at, got);
    at += got;
    return tmsize_t(got);
  }
  static tmsize_t on_write(thandle_t, void*, tmsize_t) { return 0; }
  static toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
    uint64_t& at = self(handle).position_;
    at = offset + (whence == SEEK_CUR ? at : whence == SEEK_END ? self(handle).file_.bytes.size() : 0);
    return at;
  }
  static int on_close(thandle_t) { return 0; }
  // The file is in memory already; libtiff does not write to it. (Without this, 4.5.0 rejects raw tiles.)
  static int on_map(thandle_t handle, void** base, toff_t* size) {
    *base = const_cast<uint8_t*>(self(handle).file_.bytes.data());
    *size = self(handle).file_.bytes.size();
    return 1;
  }
  static void on_unmap(thandle_t, void*, toff_t) {}
  static toff_t on_size(thandle_t handle) { return self(handle).file_.bytes.size(); }

  // Keeps the first message. The result 1 means that the process-wide handlers are not called.
  static int on_message(TIFF*, void* reader, const char*, const char* format, va_list arguments) {
    char* const text = self(reader).text_;
    if (text[0] == 0) std::vsnprintf(text, sizeof text_, format, arguments);
    std::replace(text, text + std::strlen(text), '\n', ' ');
    return 1;
  }
  static int on_warning(TIFF* tiff, void* reader, const char* module, const char* format, va_list arguments) {
    const std::string_view codec = module == nullptr ? "" : module;
    if (codec != "JPEGLib" && !codec.starts_with("Fax")) return 1;  // unknown tags and the like
    self(reader).lost_pixels_ = true;
    return on_message(tiff, reader, module, format, arguments);
  }

  const Libtiff& lib_ = libtiff();
  EncodedImage file_;
  uint64_t position_ = 0;
  TIFF* tiff_ = nullptr;
  bool lost_pixels_ = false;
  char text_[200] = {};
};

struct TiffHeader {
  uint32_t width = 0, height = 0;
  int channels = 3;
  int orientation = 1;
  bool white_is_zero = false;
  bool gray_16 = false;      // one channel of 16 bits in strips
  bool ignore_alpha = true;  // no alpha, or an extra channel that is something else
};

TiffHeader read_header(const TiffReader& reader, const EncodedImage& file) {
  TiffHeader header;
  header.width = reader.field<uint32_t>(TIFFTAG_IMAGEWIDTH, 0);
  header.height = reader.field<uint32_t>(TIFFTAG_IMAGELENGTH, 0);
  check_size(file, header.width, header.height);
  const bool tiled = reader.lib().is_tiled(reader.tiff()) != 0;
  if (tiled)
    check_size(file, reader.field<uint32_t>(TIFFTAG_TILEWIDTH, 1),
               reader.field<uint32_t>(TIFFTAG_TILELENGTH, 1));
  const auto orientation = reader.field<uint16_t>(TIFFTAG_ORIENTATION, 1);
  header.orientation = orientation >= 1 && orientation <= 8 ? orientation : 1;
  const auto samples = reader.field<uint16_t>(TIFFTAG_SAMPLESPERPIXEL, 1);
  uint16_t photometric = PHOTOMETRIC_RGB;
  reader.lib().get_field(reader.tiff(), TIFFTAG_PHOTOMETRIC, &photometric);
  header.white_is_zero = photometric == PHOTOMETRIC_MINISWHITE;
  const bool gray = header.white_is_zero || photometric == PHOTOMETRIC_MINISBLACK;
  header.channels = gray ? 1 : 3;
  header.gray_16 = gray && samples == 1 && !tiled && reader.field<uint16_t>(TIFFTAG_BITSPERSAMPLE, 1) == 16;
  uint16_t extra_count = 0;
  const uint16_t* extra = nullptr;
  if (reader.lib().get_field_defaulted(reader.tiff(), TIFFTAG_EXTRASAMPLES, &extra_count, &extra) == 1)
    header.ignore_alpha = extra_count == 0 || extra == nullptr || extra[0] == EXTRASAMPLE_UNSPECIFIED;
  return header;
}

void check_supported(const TiffReader& reader, const EncodedImage& file) {
  char reason[1024] = {};
  if (reader.lib().rgba_image_ok(reader.tiff(), reason) != 1)
    fail_no_decoder(file, "this kind of TIFF", std::string("(") + reason + ")");
}

// What libtiff keeps of the file: one decoded strip or tile.
int64_t block_bytes(const TiffReader& reader, const TiffHeader& header) {
  constexpr int64_t max_pixel_bytes = 8;  // four channels of 16 bits
  const bool tiled = reader.lib().is_tiled(reader.tiff()) != 0;
  if (tiled)
    return int64_t(reader.field<uint32_t>(TIFFTAG_TILEWIDTH, 1)) *
           reader.field<uint32_t>(TIFFTAG_TILELENGTH, 1) * max_pixel_bytes;
  const uint32_t rows = std::min(reader.field<uint32_t>(TIFFTAG_ROWSPERSTRIP, header.height), header.height);
  const uint64_t row_bytes = reader.lib().scanline_size(reader.tiff());
  return int64_t(rows) * int64_t(std::min<uint64_t>(row_bytes, uint64_t(1) << 31));
}

// libtiff's conversion to 8 bits truncates here, where it rounds for colors.
Image decode_gray_16(const TiffReader& reader, const TiffHeader& header) {
  if (reader.lib().scanline_size(reader.tiff()) != uint64_t(header.width) * 2) reader.fail_damaged();
  Image image = make_image(header.height, header.width, 1);
  std::vector<uint16_t> row(header.width);
  for (uint32_t y = 0; y < header.height; ++y) {
    if (reader.lib().read_scanline(reader.tiff(), row.data(), y, 0) != 1) reader.fail_damaged();
    uint8_t* const out = image.row(y);
    for (uint32_t x = 0; x < header.width; ++x) {
      const auto value = uint8_t((uint32_t(row[x]) + 128) / 257);
      out[x] = header.white_is_zero ? uint8_t(255 - value) : value;
    }
  }
  return image;
}

// libtiff gives colors that are already multiplied by alpha.
Image decode_rgba(const TiffReader& reader, const TiffHeader& header) {
  const size_t pixels = size_t(header.width) * header.height;
  std::vector<uint32_t> raster(pixels);
  // As stored: all orientations are handled by apply_orientation().
  reader.lib().set_field(reader.tiff(), TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
  constexpr int stop_on_error = 1;
  if (reader.lib().read_rgba(reader.tiff(), header.width, header.height, raster.data(), ORIENTATION_TOPLEFT,
                             stop_on_error) != 1)
    reader.fail_damaged();
  Image image = make_image(header.height, header.width, header.channels);
  uint8_t* out = image.pixels.data();
  for (const uint32_t pixel : raster) {
    const uint32_t white = header.ignore_alpha ? 0 : 255 - TIFFGetA(pixel);
    const uint32_t colors[] = {TIFFGetR(pixel), TIFFGetG(pixel), TIFFGetB(pixel)};
    for (int c = 0; c < header.channels; ++c) *out++ = uint8_t(std::min(colors[c] + white, 255u));
  }
  return image;
}

}  // namespace

bool has_tiff() {
  return libtiff().found;
}

StoredInfo read_tiff_info(const EncodedImage& file) {
  const TiffReader reader(file);
  const TiffHeader header = read_header(reader, file);
  return {header.height, header.width, header.channels, header.orientation};
}

Image decode_tiff(const EncodedImage& file) {
  const TiffReader reader(file);
  const TiffHeader header = read_header(reader, file);
  check_supported(reader, file);
  const int64_t pixels = int64_t(header.width) * header.height, raster = header.gray_16 ? 0 : 4;
  check_memory(file, pixels * (raster + header.channels * (header.orientation == 1 ? 1 : 2)) +
                         block_bytes(reader, header));
  Image image = header.gray_16 ? decode_gray_16(reader, header) : decode_rgba(reader, header);
  if (reader.has_lost_pixels()) reader.fail_damaged();
  return apply_orientation(std::move(image), header.orientation);
}

#else

bool has_tiff() {
  return false;
}

StoredInfo read_tiff_info(const EncodedImage& file) {
  fail_no_decoder(file, "TIFF");
}

Image decode_tiff(const EncodedImage& file) {
  fail_no_decoder(file, "TIFF");
}

#endif

}  // namespace tandem
