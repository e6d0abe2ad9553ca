#include "tandem/data/loader/sample_reader.h"

#include <fmt/format.h>
#include <malloc.h>

#include <cstring>
#include <mutex>
#include <utility>

#include "tandem/augment/augment.h"
#include "tandem/augment/photo.h"
#include "tandem/core/check.h"

namespace tandem {
namespace {

std::string describe(std::int64_t height, std::int64_t width, std::int64_t channels) {
  return fmt::format("{}x{} with {} channel{}", height, width, channels, channels == 1 ? "" : "s");
}

// Transforms images that are not known to have the right size.
class ImageTransformer {
 public:
  ImageTransformer(const Transform& transform, const ImageSize& size) : transform_(transform), size_(size) {}

  void operator()(const RandomKey& key, const ImageView& image, std::uint8_t* out) {
    if (transform_.resizes()) {
      check((image.channels == 1 || image.channels == 3) && image.height > 0 && image.width > 0,
            "expected a gray or RGB image, got {}", describe(image.height, image.width, image.channels));
      if (image.channels == 3) return transform_photo(transform_.photo(), key, image, out, photo_scratch_);
      return transform_photo(transform_.photo(), key, to_rgb(copy(image)), out, photo_scratch_);
    }
    check(image.height == size_.height && image.width == size_.width && image.channels == size_.channels,
          "expected images of one size, {} like the first, or a transform that resizes; got {}",
          describe(size_.height, size_.width, size_.channels),
          describe(image.height, image.width, image.channels));
    if (transform_.empty())
      std::memcpy(out, image.pixels, static_cast<std::size_t>(size_.bytes()));
    else
      augment_image(transform_.pixels(), size_, key, image.pixels, out, augment_scratch_);
  }

 private:
  Transform transform_;
  ImageSize size_;
  PhotoScratch photo_scratch_;
  AugmentScratch augment_scratch_;
};

class ArrayReader : public SampleReader {
 public:
  ArrayReader(const Transform& transform, const ImageArray& array)
      : recipe_(transform.pixels()), size_(array.size), images_(array.images), labels_(array.labels) {}

  std::int32_t label(std::int32_t sample) const override { return labels_[sample]; }

  void prefetch(std::int32_t sample) const override {
    prefetch_image(images_ + sample * size_.bytes(), size_);
  }

  bool read(std::int32_t sample, const RandomKey& key, std::uint8_t* out, BadSample&) override {
    const std::uint8_t* in = images_ + sample * size_.bytes();
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

// Images of an array with a transform that resizes.
class ResizingArrayReader : public SampleReader {
 public:
  ResizingArrayReader(const Transform& transform, const ImageArray& array)
      : array_(array), transform_(transform, transform.output_size(array.size)) {}

  std::int32_t label(std::int32_t sample) const override { return array_.labels[sample]; }

  bool read(std::int32_t sample, const RandomKey& key, std::uint8_t* out, BadSample&) override {
    const ImageSize& size = array_.size;
    const std::uint8_t* const in = array_.images + sample * size.bytes();
    transform_(key, {in, size.height, size.width, size.channels, std::int64_t{size.width} * size.channels},
               out);
    return true;
  }

 private:
  ImageArray array_;
  ImageTransformer transform_;
};

class DatasetReader : public SampleReader {
 public:
  DatasetReader(const Transform& transform, const ImageSize& size, std::shared_ptr<const Dataset> dataset)
      : dataset_(std::move(dataset)),
        classes_(static_cast<std::int64_t>(dataset_->classes().size())),
        transform_(transform, size) {}

  std::int32_t label(std::int32_t sample) const override {
    const std::int32_t label = dataset_->label(sample);
    check(label >= 0 && label < classes_, "expected a label from 0 to {}, got {}", classes_ - 1, label);
    return label;
  }

  bool read(std::int32_t sample, const RandomKey& key, std::uint8_t* out, BadSample&) override {
    const Image image = dataset_->image(sample);
    check(image.height >= 0 && image.width >= 0 && image.channels >= 0 &&
              static_cast<std::int64_t>(image.pixels.size()) == image.height * image.row_bytes(),
          "expected {} bytes of pixels for an image of {}, got {}", image.height * image.row_bytes(),
          describe(image.height, image.width, image.channels), image.pixels.size());
    transform_(key, image, out);
    return true;
  }

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::int64_t classes_;
  ImageTransformer transform_;
};

class PhotoReader : public SampleReader {
 public:
  PhotoReader(const Transform& transform, const ImageSize& size, const PhotoTable& photos)
      : transform_(transform), same_size_(transform, size), photos_(photos) {
    if (!photos.decoded()) keep_freed_memory();
  }

  std::int32_t label(std::int32_t sample) const override { return photos_.label(sample); }
  bool is_missing(std::int32_t sample) const override {
    return photos_.decoded() && photos_.location(sample).height == 0;
  }

  bool read(std::int32_t sample, const RandomKey& key, std::uint8_t* out, BadSample& bad) override {
    if (!transform_.resizes()) return read_same_size(sample, key, out, bad);
    if (photos_.decoded()) {
      const ImageView photo = photos_.photo(sample);
      transform_photo(transform_.photo(), key, photo, out, scratch_);
      return true;
    }
    try {
      read_photo(photos_.path(sample), photos_.decode_options(), transform_.photo(), key, out, scratch_);
      return true;
    } catch (const Error& error) {
      bad = bad_sample(error, photos_.path(sample), sample);
      return false;
    }
  }

 private:
  bool read_same_size(std::int32_t sample, const RandomKey& key, std::uint8_t* out, BadSample& bad) {
    if (photos_.decoded()) {
      same_size_(key, photos_.photo(sample), out);
      return true;
    }
    Image photo;
    try {
      photo = PhotoFile(photos_.path(sample), photos_.decode_options()).decode();
    } catch (const Error& error) {
      bad = bad_sample(error, photos_.path(sample), sample);
      return false;
    }
    same_size_(key, photo, out);
    return true;
  }

  Transform transform_;
  ImageTransformer same_size_;  // for transforms that do not resize
  PhotoTable photos_;
  PhotoScratch scratch_;
};

}  // namespace

void keep_freed_memory() {
#if defined(__GLIBC__)
  static std::once_flag once;
  std::call_once(once, [] {
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
  });
#endif
}

std::unique_ptr<SampleReader> make_array_reader(const Transform& transform, const ImageArray& array) {
  if (transform.resizes()) return std::make_unique<ResizingArrayReader>(transform, array);
  return std::make_unique<ArrayReader>(transform, array);
}

std::unique_ptr<SampleReader> make_photo_reader(const Transform& transform, const ImageSize& size,
                                                const PhotoTable& photos) {
  return std::make_unique<PhotoReader>(transform, size, photos);
}

std::unique_ptr<SampleReader> make_dataset_reader(const Transform& transform, const ImageSize& size,
                                                  std::shared_ptr<const Dataset> dataset) {
  return std::make_unique<DatasetReader>(transform, size, std::move(dataset));
}

}  // namespace tandem
