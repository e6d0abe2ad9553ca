#include "tandem/image/decode.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/image/exif.h"
#include "tandem/image/format.h"

namespace tandem {
namespace {

struct Format {
  StoredInfo (*info)(const EncodedImage&) = nullptr;
  Image (*decode)(const EncodedImage&) = nullptr;
};

constexpr size_t signature_bytes = 18;  // enough to recognize every format

// The reader for a file that begins with these bytes; null pointers if there is none.
Format recognize(std::span<const uint8_t> bytes) {
  const auto begins = [&](std::string_view with) {
    return bytes.size() >= with.size() && std::memcmp(bytes.data(), with.data(), with.size()) == 0;
  };
  if (begins("\xFF\xD8\xFF")) return {read_jpeg_info, decode_jpeg};
  if (begins("\x89PNG")) return {read_png_info, decode_png};
  if (begins("RIFF") && bytes.size() >= 12 && std::memcmp(bytes.data() + 8, "WEBP", 4) == 0)
    return {read_webp_info, decode_webp};
  // A text may begin with "BM", so the size of the second header must be a known one too.
  if (begins("BM") && bytes.size() >= signature_bytes && bytes[15] == 0 && bytes[16] == 0 && bytes[17] == 0) {
    constexpr uint8_t header_sizes[] = {12, 40, 52, 56, 64, 108, 124};
    if (std::ranges::find(header_sizes, bytes[14]) != std::end(header_sizes))
      return {read_bmp_info, decode_bmp};
  }
  if (bytes.size() >= 3 && bytes[0] == 'P' && std::strchr("2356", bytes[1]) != nullptr && bytes[1] != 0 &&
      (std::strchr(" \t\r\n#", bytes[2]) != nullptr && bytes[2] != 0))
    return {read_pnm_info, decode_pnm};
  return {};
}

void check_recognized(std::span<const uint8_t> bytes, std::string_view name) {
  check(!bytes.empty(), "[decode] {}: the file is empty", name);
  check(recognize(bytes).decode != nullptr,
        "[decode] {}: not an image of a known format (JPEG, PNG, WebP, BMP, PPM, PGM)", name);
}

EncodedImage to_encoded(std::span<const uint8_t> bytes, std::string_view name, const LoadOptions& options) {
  return {bytes, name, options.max_pixels, options.rgb};
}

class OpenFile {
 public:
  OpenFile(const std::filesystem::path& path, std::string_view name)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)), name_(name) {
    check(descriptor_ >= 0 || errno != ENOENT, "[decode] {}: no such file", name_);
    check(descriptor_ >= 0, "[decode] {}: cannot be opened: {}", name_, std::strerror(errno));
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { close(descriptor_); }

  struct stat status() const {
    struct stat result {};
    if (fstat(descriptor_, &result) != 0)
      fail("[decode] {}: cannot be read: {}", name_, std::strerror(errno));
    return result;
  }

  // Appends up to `max_bytes` bytes; fewer only at the end of the file.
  void append_to(std::vector<uint8_t>& bytes, size_t max_bytes) const {
    size_t size = bytes.size();
    const size_t end = size + max_bytes;
    bytes.resize(end);
    while (size < end) {
      const ssize_t got = read(descriptor_, bytes.data() + size, end - size);
      if (got < 0 && errno == EINTR) continue;
      check(got >= 0, "[decode] {}: cannot be read: {}", name_, std::strerror(errno));
      if (got == 0) break;
      size += size_t(got);
    }
    bytes.resize(size);
  }

 private:
  int descriptor_;
  std::string_view name_;
};

}  // namespace

void check_size(const EncodedImage& file, int64_t width, int64_t height) {
  check(width > 0 && height > 0, "[decode] {}: expected at least one pixel, the header says {}x{}", file.name,
        width, height);
  // Both sides are below 2^32 in every format, so the product fits 64 unsigned bits. The limit is clamped, so
  // that the readers can multiply the number of pixels by a small factor without overflow.
  const uint64_t pixels = uint64_t(width) * uint64_t(height);
  const int64_t limit = std::clamp<int64_t>(file.max_pixels, 0, int64_t(1) << 48);
  check(pixels <= uint64_t(limit),
        "[decode] {}: {}x{} is {} pixels, the limit is {} (--max-pixels raises it)", file.name, width, height,
        pixels, limit);
}

// In place: the write position never passes the read position.
void blend_over_white(std::vector<uint8_t>& pixels, int channels) {
  uint8_t* out = pixels.data();
  for (size_t i = 0; i < pixels.size(); i += size_t(channels) + 1) {
    const uint8_t* in = pixels.data() + i;
    const uint8_t alpha = in[channels];
    for (int c = 0; c < channels; ++c) *out++ = over_white(in[c], alpha);
  }
  pixels.resize(size_t(out - pixels.data()));
}

Image decode_image(std::span<const uint8_t> bytes, std::string_view name, const LoadOptions& options) {
  check_recognized(bytes, name);
  Image image = recognize(bytes).decode(to_encoded(bytes, name, options));
  return options.rgb && image.channels == 1 ? to_rgb(image) : image;
}

ImageInfo read_image_info(std::span<const uint8_t> bytes, std::string_view name, const LoadOptions& options) {
  check_recognized(bytes, name);
  StoredInfo info = recognize(bytes).info(to_encoded(bytes, name, options));
  if (swaps_axes(info.orientation)) std::swap(info.height, info.width);
  return {info.height, info.width, options.rgb ? 3 : info.channels};
}

Image decode_region(std::span<const uint8_t> bytes, std::string_view name, const PixelBox& box,
                    const LoadOptions& options) {
  return decode_scaled(bytes, name, box, 0, 0, options);
}

Image decode_scaled(std::span<const uint8_t> bytes, std::string_view name, const PixelBox& box,
                    int64_t min_height, int64_t min_width, const LoadOptions& options, Image memory) {
  check_recognized(bytes, name);
  if (recognize(bytes).decode == decode_jpeg)
    return decode_jpeg_box(to_encoded(bytes, name, options), box, min_height, min_width, std::move(memory));
  const Image whole = decode_image(bytes, name, options);
  return copy(crop(whole, box));
}

Image load_image(const std::filesystem::path& path, const LoadOptions& options) {
  const std::string name = path.string();
  const OpenFile file(path, name);
  const struct stat status = file.status();
  check(!S_ISDIR(status.st_mode), "[decode] {}: expected an image file, got a folder", name);

  // The first bytes are checked first, so that a video or an endless device is not read to its end.
  std::vector<uint8_t> bytes;
  file.append_to(bytes, signature_bytes);
  check_recognized(bytes, name);
  // A regular file is read in one call; a pipe has no size and is read in chunks.
  if (S_ISREG(status.st_mode) && status.st_size > int64_t(bytes.size()))
    file.append_to(bytes, size_t(status.st_size) - bytes.size());
  constexpr size_t chunk = size_t(1) << 18;
  // No format needs more than 24 bytes per pixel (a plain-text PPM).
  const int64_t max_bytes = std::clamp<int64_t>(options.max_pixels, 0, int64_t(1) << 48) * 24 + (1 << 24);
  for (size_t before = 0; before != bytes.size();) {
    check(int64_t(bytes.size()) <= max_bytes,
          "[decode] {}: more than {} bytes, too long for an image of {} pixels", name, max_bytes,
          options.max_pixels);
    before = bytes.size();
    file.append_to(bytes, chunk);
  }
  return decode_image(bytes, name, options);
}

}  // namespace tandem
