// WebP through libwebp, where the build has it: lossy and lossless, without animations.
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/image/exif.h"
#include "tandem/image/format.h"

#if TANDEM_HAS_WEBP
#include <webp/decode.h>
#endif

namespace tandem {

#if TANDEM_HAS_WEBP
namespace {

// In the RIFF chunks (name, length, data padded to an even length) EXIF, else XMP.
int orientation_of(std::span<const uint8_t> bytes) {
  std::optional<int> exif, xmp;
  constexpr size_t file_header = 12, chunk_header = 8;
  for (size_t at = file_header; at + chunk_header <= bytes.size();) {
    const uint8_t* chunk = bytes.data() + at;
    const size_t length =
        size_t(chunk[4]) | size_t(chunk[5]) << 8 | size_t(chunk[6]) << 16 | size_t(chunk[7]) << 24;
    if (length > bytes.size() - at - chunk_header) break;
    const uint8_t* const data = chunk + chunk_header;
    if (std::memcmp(chunk, "EXIF", 4) == 0 && !exif) exif = find_exif_orientation({data, length});
    if (std::memcmp(chunk, "XMP ", 4) == 0 && !xmp)
      xmp = find_xmp_orientation({reinterpret_cast<const char*>(data), length});
    at += chunk_header + length + length % 2;
  }
  return exif.value_or(xmp.value_or(1));
}

WebPBitstreamFeatures read_header(const EncodedImage& file) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(file.bytes.data(), file.bytes.size(), &features);
  const uint8_t* size = file.bytes.data() + 4;
  const size_t declared =
      size_t(size[0]) | size_t(size[1]) << 8 | size_t(size[2]) << 16 | size_t(size[3]) << 24;
  check(status == VP8_STATUS_OK && declared + 8 <= file.bytes.size(),
        "[decode] {}: the WebP is damaged or truncated", file.name);
  check_size(file, features.width, features.height);
  check(features.has_animation == 0, "[decode] {}: expected a still WebP image, got an animation", file.name);
  return features;
}

}  // namespace

bool has_webp() {
  return true;
}

StoredInfo read_webp_info(const EncodedImage& file) {
  const WebPBitstreamFeatures features = read_header(file);
  return {features.height, features.width, 3, orientation_of(file.bytes)};
}

Image decode_webp(const EncodedImage& file) {
  const WebPBitstreamFeatures features = read_header(file);
  const bool alpha = features.has_alpha != 0;
  const int orientation = orientation_of(file.bytes);
  // The library keeps the pixels of a lossless file, and the alpha channel of a lossy one.
  const int64_t kept = features.format == 2 ? 4 : alpha ? 2 : 0;
  check_memory(file, int64_t(features.width) * features.height *
                         (kept + (alpha ? 4 : 3) + (orientation == 1 ? 0 : 3)));
  Image image{features.height, features.width, 3, {}};
  const int row = features.width * (alpha ? 4 : 3);
  image.pixels.resize(size_t(features.height) * size_t(row));
  const auto decode = alpha ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  check(
      decode(file.bytes.data(), file.bytes.size(), image.pixels.data(), image.pixels.size(), row) != nullptr,
      "[decode] {}: the WebP is damaged or truncated", file.name);
  if (alpha) blend_over_white(image.pixels, 3);
  return apply_orientation(std::move(image), orientation);
}

#else

bool has_webp() {
  return false;
}

StoredInfo read_webp_info(const EncodedImage& file) {
  fail_no_decoder(file, "WebP");
}

Image decode_webp(const EncodedImage& file) {
  fail_no_decoder(file, "WebP");
}

#endif

}  // namespace tandem
