#include "tandem/data/loader/sample_reader.h"

#include <malloc.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "tandem/augment/augment.h"
#include "tandem/augment/photo.h"
#include "tandem/core/error.h"

namespace tandem {
namespace {

class ArrayReader : public SampleReader {
 public:
  ArrayReader(const RingSetup& setup, const std::uint8_t* images, const std::int32_t* labels)
      : recipe_(setup.recipe), size_(setup.image), images_(images), labels_(labels) {}

  std::int32_t label(std::int32_t sample) const override { return labels_[sample]; }

  void prefetch(std::int32_t sample) const override {
    prefetch_image(images_ + sample * size_.bytes(), size_);
  }

  bool read(const RandomKey& key, std::uint8_t* out, std::string&) override {
    const std::uint8_t* in = images_ + static_cast<std::int32_t>(key.sample) * size_.bytes();
    if (recipe_.empty())
      std::memcpy(out, in, static_cast<std::size_t>(size_.bytes()));
    else
      augment_image(recipe_, size_, key, in, out, scratch_);
    return true;
  }

 private:
  Recipe recipe_;
  ImageSize size_;
  const std::uint8_t* images_;
  const std::int32_t* labels_;
  AugmentScratch scratch_;
};

// Decoders allocate and free the same amounts for every file. By default glibc returns those pages to the
// kernel each time and faults them in again.
void keep_freed_memory() {
#if defined(__GLIBC__)
  static std::once_flag once;
  std::call_once(once, [] {
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
  });
#endif
}

class PhotoReader : public SampleReader {
 public:
  PhotoReader(const RingSetup& setup, const PhotoTable& photos) : recipe_(setup.photo), photos_(photos) {
    if (!photos.decoded()) keep_freed_memory();
  }

  std::int32_t label(std::int32_t sample) const override { return photos_.label(sample); }
  bool is_missing(std::int32_t sample) const override {
    return photos_.decoded() && photos_.location(sample).height == 0;
  }

  bool read(const RandomKey& key, std::uint8_t* out, std::string& reason) override {
    const auto sample = static_cast<std::int32_t>(key.sample);
    if (photos_.decoded()) {
      const ImageView photo = photos_.photo(sample);
      transform_photo(recipe_, key, photo, out, scratch_);
      return true;
    }
    try {
      read_photo(photos_.path(sample), photos_.decode_options(), recipe_, key, out, scratch_);
      return true;
    } catch (const Error& error) {
      reason = reason_without_path(error.what(), photos_.path(sample));
      return false;
    }
  }

 private:
  PhotoRecipe recipe_;
  PhotoTable photos_;
  PhotoScratch scratch_;
};

}  // namespace

std::unique_ptr<SampleReader> make_array_reader(const RingSetup& setup, const std::uint8_t* images,
                                                const std::int32_t* labels) {
  return std::make_unique<ArrayReader>(setup, images, labels);
}

std::unique_ptr<SampleReader> make_photo_reader(const RingSetup& setup, const PhotoTable& photos) {
  return std::make_unique<PhotoReader>(setup, photos);
}

}  // namespace tandem
