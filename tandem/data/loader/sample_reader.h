// What a worker does for one sample: reads an image of an in-memory set or a photograph, and augments it.
// Each worker has a reader of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tandem/data/loader/ring.h"
#include "tandem/data/photo_store.h"

namespace tandem {

class SampleReader {
 public:
  virtual ~SampleReader() = default;

  virtual std::int32_t label(std::int32_t sample) const = 0;
  // Fetches a sample that will be read soon into the CPU caches.
  virtual void prefetch(std::int32_t sample) const { static_cast<void>(sample); }
  // Whether the sample is known not to be readable before it is tried.
  virtual bool is_missing(std::int32_t sample) const { return static_cast<void>(sample), false; }
  // Writes setup.image.bytes() bytes. False: the photograph cannot be read, and `reason` says why.
  virtual bool read(const RandomKey& key, std::uint8_t* out, std::string& reason) = 0;
};

// Contiguous images of setup.image's size. The arrays must outlive the reader.
std::unique_ptr<SampleReader> make_array_reader(const RingSetup& setup, const std::uint8_t* images,
                                                const std::int32_t* labels);

std::unique_ptr<SampleReader> make_photo_reader(const RingSetup& setup, const PhotoTable& photos);

}  // namespace tandem
