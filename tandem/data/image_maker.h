// What a worker does for one sample: the image of a training set in memory, augmented, or a photograph made
// ready for the network. Each worker has a maker of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tandem/data/photo_store.h"
#include "tandem/data/ring.h"

namespace tandem {

class ImageMaker {
 public:
  virtual ~ImageMaker() = default;

  virtual std::int32_t label(std::int32_t sample) const = 0;
  // Asks for what is needed soon.
  virtual void fetch_ahead(std::int32_t sample) const { static_cast<void>(sample); }
  // Known beforehand not to be readable.
  virtual bool is_missing(std::int32_t sample) const { return static_cast<void>(sample), false; }
  // Writes setup.image.bytes() bytes; false: it is found to be a bad photograph, `reason` says why.
  virtual bool make(const DrawKey& key, std::uint8_t* out, std::string& reason) = 0;
};

// Images one after another, of setup.image's size. All given must outlive the maker.
std::unique_ptr<ImageMaker> array_maker(const RingSetup& setup, const std::uint8_t* images,
                                        const std::int32_t* labels);

std::unique_ptr<ImageMaker> photo_maker(const RingSetup& setup, const PhotoTable& photos);

}  // namespace tandem
