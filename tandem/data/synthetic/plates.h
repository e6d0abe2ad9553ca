// The built-in photographs: rendered cleaned and dirty plates on tables. An image is a function of the seed,
// its index and its class alone, with the same bits on every machine. Both classes vary in the same way in
// table, light, size, position, tilt, color and decoration, so that color alone does not separate them.
#pragma once

#include <cstdint>
#include <filesystem>

#include "tandem/image/image.h"

namespace tandem {

/// Renders a square RGB image with sides of `size` pixels. Throws Error unless `size` is 8 to 4096.
/// Thread-safe.
Image render_plate(std::uint64_t seed, std::uint64_t index, bool dirty, std::int64_t size = 480);

/// The name of a class: cleaned or dirty.
const char* plate_class(bool dirty);

struct PlatesOptions {
  std::int64_t train = 20;  ///< training images per class
  std::int64_t test = 500;  ///< test images in total, of alternating classes
  std::uint64_t seed = 1;
  std::int64_t size = 480;  ///< side in pixels
};

/// The index of the first test image: test images do not depend on the number of training images.
inline constexpr std::uint64_t first_test_plate = std::uint64_t{1} << 32;

/// Writes PNG files to ROOT/train/cleaned, ROOT/train/dirty, ROOT/test/cleaned and ROOT/test/dirty, named by
/// class and index. Throws Error unless `root` does not exist or is empty, and when a file cannot be written.
void write_plates(const std::filesystem::path& root, const PlatesOptions& options = {});

}  // namespace tandem
