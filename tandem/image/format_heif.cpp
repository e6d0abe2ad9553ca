// HEIC through libheif, where the build has its header and the machine the library with an HEVC decoder: the
// primary image. The library is opened when the first such file is met.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/shared_library.h"
#include "tandem/image/decode_error.h"
#include "tandem/image/format.h"
#include "tandem/image/heif_references.h"

#if TANDEM_HAS_HEIF
#include <libheif/heif.h>
#endif

namespace tandem {

#if TANDEM_HAS_HEIF
namespace {

struct Libheif {
  decltype(heif_have_decoder_for_format)* have_decoder;
  decltype(heif_context_alloc)* context_alloc;
  decltype(heif_context_free)* context_free;
  decltype(heif_context_set_max_decoding_threads)* set_threads;
  decltype(heif_context_read_from_memory_without_copy)* read_memory;
  decltype(heif_context_get_primary_image_handle)* primary_handle;
  decltype(heif_image_handle_release)* handle_release;
  decltype(heif_image_handle_get_width)* handle_width;
  decltype(heif_image_handle_get_height)* handle_height;
  decltype(heif_image_handle_get_ispe_width)* stored_width;
  decltype(heif_image_handle_get_ispe_height)* stored_height;
  decltype(heif_image_handle_has_alpha_channel)* has_alpha;
  decltype(heif_image_handle_is_premultiplied_alpha)* is_premultiplied;
  decltype(heif_decoding_options_alloc)* options_alloc;
  decltype(heif_decoding_options_free)* options_free;
  decltype(heif_decode_image)* decode;
  decltype(heif_image_release)* image_release;
  decltype(heif_image_get_primary_width)* image_width;
  decltype(heif_image_get_primary_height)* image_height;
  decltype(heif_image_get_plane_readonly)* plane;
  decltype(heif_image_get_decoding_warnings)* warnings;
  bool found = false;

  Libheif() {
    SharedLibrary library({.name = "libheif", .files = {"libheif.so.1"}, .folders = {}});
    found = library.provides([&] { find_functions(library); });
  }

 private:
  void find_functions(SharedLibrary& library) {
    const auto init = library.function<decltype(heif_init)*>("heif_init");
    have_decoder = library.function<decltype(have_decoder)>("heif_have_decoder_for_format");
    context_alloc = library.function<decltype(context_alloc)>("heif_context_alloc");
    context_free = library.function<decltype(context_free)>("heif_context_free");
    set_threads = library.function<decltype(set_threads)>("heif_context_set_max_decoding_threads");
    read_memory = library.function<decltype(read_memory)>("heif_context_read_from_memory_without_copy");
    primary_handle = library.function<decltype(primary_handle)>("heif_context_get_primary_image_handle");
    handle_release = library.function<decltype(handle_release)>("heif_image_handle_release");
    handle_width = library.function<decltype(handle_width)>("heif_image_handle_get_width");
    handle_height = library.function<decltype(handle_height)>("heif_image_handle_get_height");
    stored_width = library.function<decltype(stored_width)>("heif_image_handle_get_ispe_width");
    stored_height = library.function<decltype(stored_height)>("heif_image_handle_get_ispe_height");
    has_alpha = library.function<decltype(has_alpha)>("heif_image_handle_has_alpha_channel");
    is_premultiplied =
        library.function<decltype(is_premultiplied)>("heif_image_handle_is_premultiplied_alpha");
    options_alloc = library.function<decltype(options_alloc)>("heif_decoding_options_alloc");
    options_free = library.function<decltype(options_free)>("heif_decoding_options_free");
    decode = library.function<decltype(decode)>("heif_decode_image");
    image_release = library.function<decltype(image_release)>("heif_image_release");
    image_width = library.function<decltype(image_width)>("heif_image_get_primary_width");
    image_height = library.function<decltype(image_height)>("heif_image_get_primary_height");
    plane = library.function<decltype(plane)>("heif_image_get_plane_readonly");
    warnings = library.function<decltype(warnings)>("heif_image_get_decoding_warnings");
    init(nullptr);  // loads the decoders where they are plugins
  }
};

const Libheif& libheif() {
  static const Libheif functions;
  return functions;
}

class HeifReader {
 public:
  explicit HeifReader(const EncodedImage& file) : file_(file) {
    if (!lib_.found) fail_no_decoder(file, "HEIC", "on this machine: libheif.so.1 is not installed");
    if (!has_heif()) fail_no_decoder(file, "HEIC", "on this machine: libheif has no HEVC decoder");
    check(heif_references_end(file.bytes),
          "[decode] {}: the HEIC is damaged: an image in it is made of itself or of too many others",
          file.name);
    const auto canvases = heif_canvases(file.bytes);
    check(canvases.has_value(), "[decode] {}: the HEIC is damaged: its tables of images are not valid",
          file.name);
    for (const HeifCanvas& canvas : *canvases) {
      check_size(file, int64_t(canvas.width), int64_t(canvas.height));
      canvas_pixels_ = std::max(canvas_pixels_, int64_t(canvas.width * canvas.height));
    }
    context_.reset(lib_.context_alloc());
    expect(context_ != nullptr);
    lib_.set_threads(context_.get(), 0);  // callers decode several files in parallel
    check_fine(lib_.read_memory(context_.get(), file.bytes.data(), file.bytes.size(), nullptr));
    heif_image_handle* handle = nullptr;
    check_fine(lib_.primary_handle(context_.get(), &handle));
    handle_.reset(handle);
    // The decoder allocates the image as stored, which a crop may make smaller.
    check_size(file, lib_.stored_width(handle), lib_.stored_height(handle));
    check_size(file, width(), height());
  }

  int width() const { return lib_.handle_width(handle_.get()); }
  int height() const { return lib_.handle_height(handle_.get()); }

  // Rotation, mirroring and cropping are applied by libheif; an EXIF orientation must be ignored.
  Image decode() const {
    const bool alpha = lib_.has_alpha(handle_.get()) != 0;
    const int channels = alpha ? 4 : 3;
    // The planes as decoded (of up to two bytes), their conversion, and the copy of it.
    const int64_t stored =
        std::max(int64_t(lib_.stored_width(handle_.get())) * int64_t(lib_.stored_height(handle_.get())),
                 canvas_pixels_);
    check_memory(file_, stored * channels + 2 * channels * int64_t(width()) * height());
    if (std::max(stored, int64_t(width()) * height()) * channels > INT32_MAX)  // it crashed on more
      throw DecodeError(SkipKind::too_large,
                        fmt::format("[decode] {}: libheif decodes at most 2 GiB", file_.name));
    std::unique_ptr<heif_decoding_options, void (*)(heif_decoding_options*)> options(lib_.options_alloc(),
                                                                                     lib_.options_free);
    expect(options != nullptr);
    options->convert_hdr_to_8bit = 1;
    options->strict_decoding = 1;
    heif_image* decoded = nullptr;
    check_fine(lib_.decode(handle_.get(), &decoded, heif_colorspace_RGB,
                           alpha ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB,
                           options.get()));
    const std::unique_ptr<heif_image, void (*)(const heif_image*)> owner(decoded, lib_.image_release);
    heif_error warning{};
    if (lib_.warnings(decoded, 0, &warning, 1) > 0) check_fine(warning);
    int stride = 0;
    const uint8_t* const pixels = lib_.plane(decoded, heif_channel_interleaved, &stride);
    check(pixels != nullptr && lib_.image_width(decoded) == width() &&
              lib_.image_height(decoded) == height() && stride >= width() * channels,
          "[decode] {}: the HEIC is damaged: its pixels do not have the size in its header", file_.name);
    Image image{height(), width(), 3, {}};
    const auto row = size_t(width()) * size_t(channels);
    image.pixels.resize(size_t(height()) * row);
    for (int64_t y = 0; y < height(); ++y)
      std::memcpy(image.pixels.data() + size_t(y) * row, pixels + y * stride, row);
    if (!alpha) return image;
    if (lib_.is_premultiplied(handle_.get()) != 0)
      add_white(image.pixels);
    else
      blend_over_white(image.pixels, 3);
    return image;
  }

 private:
  void check_fine(const heif_error& error) const {
    if (error.code == heif_error_Ok) return;
    std::string text = error.message == nullptr ? "" : error.message;
    for (char& c : text)
      if (c == '\n') c = ' ';
    if (error.code == heif_error_Unsupported_feature || error.code == heif_error_Unsupported_filetype)
      fail_no_decoder(file_, "this kind of HEIC", "(" + text + ")");
    fail("[decode] {}: the HEIC is damaged or truncated: {}", file_.name, text);
  }

  // (R, G, B, alpha), the colors already multiplied by alpha, to (R, G, B) over white.
  static void add_white(std::vector<uint8_t>& pixels) {
    size_t to = 0;
    for (size_t from = 0; from < pixels.size(); from += 4) {
      const int white = 255 - pixels[from + 3];
      for (size_t c = 0; c < 3; ++c) pixels[to++] = uint8_t(std::min(pixels[from + c] + white, 255));
    }
    pixels.resize(to);
  }

  const Libheif& lib_ = libheif();
  EncodedImage file_;
  int64_t canvas_pixels_ = 0;  // of the largest image that is put together of others
  std::unique_ptr<heif_context, void (*)(heif_context*)> context_{nullptr, lib_.context_free};
  std::unique_ptr<heif_image_handle, void (*)(const heif_image_handle*)> handle_{nullptr,
                                                                                 lib_.handle_release};
};

}  // namespace

bool has_heif() {
  return libheif().found && libheif().have_decoder(heif_compression_HEVC) != 0;
}

StoredInfo read_heif_info(const EncodedImage& file) {
  const HeifReader reader(file);
  return {reader.height(), reader.width(), 3, 1};
}

Image decode_heif(const EncodedImage& file) {
  return HeifReader(file).decode();
}

#else

bool has_heif() {
  return false;
}

StoredInfo read_heif_info(const EncodedImage& file) {
  fail_no_decoder(file, "HEIC");
}

Image decode_heif(const EncodedImage& file) {
  fail_no_decoder(file, "HEIC");
}

#endif

}  // namespace tandem
