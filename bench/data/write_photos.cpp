// data_write_photos FOLDER FILES WIDTH HEIGHT [QUALITY [NOISE]]: writes a folder of JPEGs (4:2:0) for
// bench/input: train/cleaned, train/dirty and val with the same classes. Up to 512 pictures are different,
// rendered plates with sensor noise of the given deviation; the other files repeat them. Prints the mean size
// of a file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/core/philox.h"
#include "tandem/data/synthetic/plates.h"
#include "tests/image/jpeg_writer.h"

namespace tandem {
namespace {

constexpr std::int64_t max_pictures = 512, validation_files = 64;

// Nearly normal: the sum of four uniform numbers.
void add_noise(Image& image, std::uint64_t stream, double deviation) {
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    const Words4 words = random_block(2, stream, i);
    double sum = -2;
    for (const std::uint32_t word : words.word) sum += to_unit_float(word);
    const double level = image.pixels[i] + deviation * std::sqrt(3.0) * sum;
    image.pixels[i] = static_cast<std::uint8_t>(std::clamp(std::lround(level), 0L, 255L));
  }
}

std::vector<std::uint8_t> make_jpeg(std::int64_t index, std::int64_t height, std::int64_t width, int quality,
                                    double noise) {
  const std::int64_t side = std::max(height, width);
  const Image plate = render_plate(3, static_cast<std::uint64_t>(index), index % 2 == 1, side);
  Image photo = copy(crop(plate, {(side - width) / 2, (side - height) / 2, width, height}));
  add_noise(photo, static_cast<std::uint64_t>(index), noise);
  return write_jpeg(photo, {.quality = quality});
}

void write_photos(const std::vector<std::string>& words) {
  check(words.size() >= 4 && words.size() <= 6,
        "expected FOLDER FILES WIDTH HEIGHT [QUALITY [NOISE]], got {} words", words.size());
  const std::filesystem::path folder = words[0];
  const std::int64_t files = std::atoll(words[1].c_str()), width = std::atoll(words[2].c_str()),
                     height = std::atoll(words[3].c_str());
  const int quality = words.size() > 4 ? std::atoi(words[4].c_str()) : 90;
  const double noise = words.size() > 5 ? std::atof(words[5].c_str()) : 3;
  check(files >= 2 && width >= 16 && height >= 16 && quality >= 1 && quality <= 100,
        "expected two files or more of 16x16 pixels or more, and a quality from 1 to 100");
  std::vector<std::vector<std::uint8_t>> pictures(
      static_cast<std::size_t>(std::min(files, max_pictures) / 2 * 2));
  parallel_tasks(std::ssize(pictures), 1, [&] {
    return [&](std::int64_t i, std::int64_t) {
      pictures[static_cast<std::size_t>(i)] = make_jpeg(i, height, width, quality, noise);
    };
  });
  double bytes = 0;
  for (const auto& picture : pictures) bytes += static_cast<double>(picture.size());
  const auto write = [&](const char* part, std::int64_t count) {
    for (const char* const name : {"cleaned", "dirty"})
      std::filesystem::create_directories(folder / part / name);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto& picture = pictures[static_cast<std::size_t>(i) % pictures.size()];
      std::ofstream file(folder / part / (i % 2 == 1 ? "dirty" : "cleaned") / fmt::format("{:07}.jpg", i),
                         std::ios::binary);
      file.write(reinterpret_cast<const char*>(picture.data()), static_cast<std::streamsize>(picture.size()));
      check(file.good(), "cannot write to {}", folder.string());
    }
  };
  write("train", files);
  write("val", validation_files);
  bytes /= static_cast<double>(pictures.size());
  fmt::print("{} files of {}x{}, quality {}: {:.0f} bytes each, {:.2f} bits per pixel\n", files, width,
             height, quality, bytes, 8 * bytes / static_cast<double>(width * height));
}

}  // namespace
}  // namespace tandem

int main(int count, char** words) {
  try {
    tandem::write_photos({words + 1, words + count});
  } catch (const std::exception& error) {
    fmt::print(stderr, "data_write_photos: error: {}\n", error.what());
    return 1;
  }
}
