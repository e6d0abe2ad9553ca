// What is known of each image after one look at its file: size, colors, and what finds copies.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tandem/image/picture_hash.h"
#include "tandem/study/check/checked_files.h"

namespace tandem {

struct ImageFacts {
  std::int32_t height = 0, width = 0;    // 0: not read
  std::uint64_t bytes = 0, content = 0;  // the size of the file and a hash of its bytes
  PictureHashes hashes;
  std::array<std::uint8_t, 3> color{};  // the mean of red, green and blue
  std::uint8_t contrast = 0;            // the standard deviation of the brightness
  std::uint8_t colorfulness = 0;        // the mean difference of the largest and the smallest channel

  bool was_read() const { return height > 0; }
};

struct Survey {
  std::vector<ImageFacts> images;       // of each file
  std::vector<SkippedSample> not_read;  // by file
};

using CheckProgress = std::function<void(std::int64_t done, std::int64_t total)>;

// Reads all files in parallel. JPEGs are decoded at a reduced scale, which reads all of the file, so that
// damage is found as a full decode finds it.
Survey survey_images(const CheckedFiles& files, std::int64_t max_pixels,
                     const CheckProgress& on_progress = {});

// A hash of bytes that is fast; files with the same one are compared.
std::uint64_t content_hash(std::span<const std::uint8_t> bytes);

}  // namespace tandem
