// What a worker does for one sample: reads its image and transforms it. Each worker has a reader of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tandem/augment/transform.h"
#include "tandem/core/philox.h"
#include "tandem/data/dataset.h"
#include "tandem/data/photo_store.h"
#include "tandem/image/image.h"

namespace tandem {

class SampleReader {
 public:
  virtual ~SampleReader() = default;

  virtual std::int32_t label(std::int32_t sample) const = 0;
  // Fetches a sample that will be read soon into the CPU caches.
  virtual void prefetch(std::int32_t sample) const { static_cast<void>(sample); }
  // Whether the sample is known not to be readable before it is tried.
  virtual bool is_missing(std::int32_t sample) const { return static_cast<void>(sample), false; }
  // Writes the bytes of one image, transformed with the arguments that the key gives. False: the photograph
  // cannot be read, and `bad` says why.
  virtual bool read(std::int32_t sample, const RandomKey& key, std::uint8_t* out, BadSample& bad) = 0;
};

// Decoders allocate and free the same amounts for every file. By default glibc returns those pages to the
// kernel each time and faults them in again; not any more after this.
void keep_freed_memory();

// Contiguous images of one size. The arrays must outlive the reader.
struct ImageArray {
  ImageSize size;
  const std::uint8_t* images = nullptr;
  const std::int32_t* labels = nullptr;
};
std::unique_ptr<SampleReader> make_array_reader(const Transform& transform, const ImageArray& array);

// `size` is that of the transformed images. A transform that does not resize requires photographs of that
// size.
std::unique_ptr<SampleReader> make_photo_reader(const Transform& transform, const ImageSize& size,
                                                const PhotoTable& photos);
std::unique_ptr<SampleReader> make_dataset_reader(const Transform& transform, const ImageSize& size,
                                                  std::shared_ptr<const Dataset> dataset);

}  // namespace tandem
