// A folder of tiny photographs that a network can classify: reddish and bluish noise.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tandem/data/image_set.h"
#include "tandem/image/encode_png.h"
#include "tests/files/test_files.h"

namespace tandem {

inline Image tinted(bool red, unsigned number, std::int64_t height = 24, std::int64_t width = 20) {
  Image image = make_image(height, width, 3);
  std::uint32_t state = 2 * number + (red ? 1 : 0) + 12345;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    const bool strong = i % 3 == (red ? 0u : 2u);
    image.pixels[i] = static_cast<std::uint8_t>((strong ? 120 : 20) + (state >> 24) / 4);
  }
  return image;
}

// Of 16×16, the classes in turn.
inline ImageSet tinted_images(std::int64_t count, unsigned first = 0) {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    const Image image = tinted(i % 2 == 1, first + static_cast<unsigned>(i), 16, 16);
    pixels.insert(pixels.end(), image.pixels.begin(), image.pixels.end());
    labels.push_back(static_cast<std::int32_t>(i % 2));
  }
  return {.images = Tensor::from(pixels, {count, 16, 16, 3}),
          .labels = Tensor::from(labels, {count}),
          .classes = {"blue", "red"}};
}

// FOLDER/<first> and FOLDER/<second> with `count` files each.
inline void write_photos(const std::filesystem::path& folder, unsigned count, unsigned first_number = 0,
                         const std::string& first = "blue", const std::string& second = "red") {
  for (const bool red : {false, true}) {
    const std::filesystem::path class_folder = folder / (red ? second : first);
    std::filesystem::create_directories(class_folder);
    for (unsigned i = first_number; i < first_number + count; ++i)
      save_png(class_folder / ("photo " + std::to_string(100 + i) + ".png"), tinted(red, i));
  }
}

}  // namespace tandem
