// Helpers for the photo tests: random photographs of any size, and recipes that together use every operation.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tandem/augment/photo.h"
#include "tandem/augment/transform.h"

namespace tandem {

inline Image noise_photo(std::int64_t height, std::int64_t width, unsigned seed) {
  std::mt19937 engine(seed);
  Image image = make_image(height, width, 3);
  for (std::uint8_t& level : image.pixels) level = static_cast<std::uint8_t>(engine() >> 11);
  return image;
}

// Photographs in one buffer, in the layout of transform_photo_batch(); the one before the last is missing.
struct PackedPhotos {
  std::vector<Image> photos;
  Tensor pixels, locations;
  std::int64_t count() const { return locations.size(0); }
};

inline PackedPhotos pack_photos(const std::vector<std::pair<std::int64_t, std::int64_t>>& sizes) {
  PackedPhotos packed;
  std::vector<std::uint8_t> pixels;
  std::vector<std::int64_t> locations;
  for (const auto& [height, width] : sizes) {
    packed.photos.push_back(noise_photo(height, width, static_cast<unsigned>(packed.photos.size()) + 3));
    const Image& photo = packed.photos.back();
    const bool missing = packed.photos.size() + 1 == sizes.size();
    for (const std::int64_t field : {static_cast<std::int64_t>(pixels.size()), missing ? 0 : height, width})
      locations.push_back(field);
    if (!missing) pixels.insert(pixels.end(), photo.pixels.begin(), photo.pixels.end());
  }
  const auto bytes = static_cast<std::int64_t>(pixels.size()),
             count = static_cast<std::int64_t>(sizes.size());
  packed.pixels = Tensor::from(pixels, {bytes});
  packed.locations = Tensor::from(locations, {count, 3});
  return packed;
}

inline const std::vector<std::string> photo_recipes = {
    "photo",
    "resize",
    "center 40",
    "letterbox",
    "letterbox 114, bicubic, flip 0.5, jitter 0.4 0 0 0",
    "crop 0.3 1, bicubic, flip 0.3",
    "crop, flip, jitter 0.4 0.4 0.4 0.1",
    "crop, erase 0.7",
    "resize, randaugment 2 9",
    "resize, trivial_augment",
    "crop, vertical_flip, rotation 30",
    "letterbox, flip, vertical_flip 0.5, perspective 0.6 0.8",
    "crop, rotation 180, perspective 1 1, jitter 0.4 0.4 0.4 0.1, randaugment 4 15, trivial_augment, erase "
    "0.5",
    "crop, flip, jitter 2 3 1.5 0.5, randaugment 4 30, erase 0.5 0.1 0.8 0.2 4"};

}  // namespace tandem
