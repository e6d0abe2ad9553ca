// ConfinedDecoder: decodes images in confined processes, one for each thread that decodes at the same time.
// An image that crashes its decoder, or takes too much memory or time, is one that cannot be read.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "tandem/image/image_decoder.h"
#include "tandem/train/decoders/decode_process.h"

namespace tandem {

class ConfinedDecoder : public ImageDecoder {
 public:
  // Throws Error if a process cannot be started or confined.
  explicit ConfinedDecoder(DecodeProcessOptions options);

  ImageInfo read_image_info(std::span<const std::uint8_t> bytes, std::string_view name,
                            const LoadOptions& options) override;
  Image decode_image(std::span<const std::uint8_t> bytes, std::string_view name,
                     const LoadOptions& options) override;
  Image decode_scaled(std::span<const std::uint8_t> bytes, std::string_view name, const PixelBox& box,
                      std::int64_t min_height, std::int64_t min_width, const LoadOptions& options) override;
  std::int64_t max_pixels() const override { return options_.max_pixels; }

 private:
  class Lease;

  const DecodeProcessOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<DecodeProcess>> idle_;
};

}  // namespace tandem
