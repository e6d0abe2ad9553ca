// Another place to decode images than this process, for those of strangers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "tandem/image/decode.h"

namespace tandem {

// Decodes in place of the functions of decode.h with the same names, from several threads at once.
class ImageDecoder {
 public:
  ImageDecoder() = default;
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;
  virtual ~ImageDecoder() = default;

  virtual ImageInfo read_image_info(std::span<const std::uint8_t> bytes, std::string_view name,
                                    const LoadOptions& options) = 0;
  virtual Image decode_image(std::span<const std::uint8_t> bytes, std::string_view name,
                             const LoadOptions& options) = 0;
  virtual Image decode_scaled(std::span<const std::uint8_t> bytes, std::string_view name, const PixelBox& box,
                              std::int64_t min_height, std::int64_t min_width,
                              const LoadOptions& options) = 0;
  // It refuses larger images, whatever the options say.
  virtual std::int64_t max_pixels() const = 0;
};

// All functions of decode.h use it from now on; null: this process decodes. Call it before other threads
// decode.
void set_image_decoder(std::shared_ptr<ImageDecoder> decoder);
// Null: this process decodes.
const ImageDecoder* image_decoder();

}  // namespace tandem
