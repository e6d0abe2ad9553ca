// The JPEG engine of a GPU: hardware that decodes baseline JPEGs beside the multiprocessors. Its library,
// nvJPEG, is opened when an engine is first asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tandem/device/device.h"

namespace tandem {

// A JPEG, and where on the device its pixels go: interleaved RGB rows without padding, 3 x width x height
// bytes. A gray one repeats its channel.
struct JpegJob {
  std::span<const std::uint8_t> bytes;
  std::uint8_t* pixels = nullptr;
  std::int64_t width = 0;
};

class JpegEngine {
 public:
  JpegEngine() = default;
  JpegEngine(const JpegEngine&) = delete;
  JpegEngine& operator=(const JpegEngine&) = delete;
  virtual ~JpegEngine() = default;

  // Decodes the files and waits for them. False if one of them cannot be decoded, or is of a kind that the
  // engine does not have: the pixels of all of them are undefined then. Chroma is repeated, not interpolated:
  // the pixels are those of libjpeg with LoadOptions::plain_chroma. Damage within the compressed data may go
  // undetected. Work on other streams must not use the pixels any more. For one thread at a time.
  virtual bool decode(std::span<const JpegJob> jobs) = 0;
};

// Null when the device has no engine or its library is not installed; `problem` says why.
std::unique_ptr<JpegEngine> open_jpeg_engine(Device device, std::string& problem);

template <Backend B>
std::unique_ptr<JpegEngine> open_backend_jpeg_engine(Device device, std::string& problem);

}  // namespace tandem
