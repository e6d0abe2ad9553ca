// A thousand damaged files, made from valid ones of every format by flipping, cutting and splicing bytes.
// Every decoding function must return an image of the size in the header or throw a one-line Error. Most
// useful under asan.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "tandem/image/decode.h"
#include "tandem/image/example_photo.h"
#include "tests/image/jpeg_writer.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr LoadOptions options{.max_pixels = 200'000};

std::vector<Bytes> valid_files() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) {
    if (can_decode_file(entry.path())) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);  // the same order everywhere, because the damage is sampled from a seed
  std::vector<Bytes> files;
  for (const auto& path : paths) files.push_back(read_bytes(path));
  const Image photo = example_photo(60, 90);
  files.push_back(write_jpeg(photo, {.restart_interval = 4}));
  files.push_back(write_jpeg(photo, {.h_factor = 1, .progressive = true, .orientation = 5}));
  files.push_back(write_jpeg(photo, {.h_factor = 1, .v_factor = 1, .cmyk = true}));
  files.push_back(write_jpeg(to_gray(photo), {.h_factor = 1, .v_factor = 1}));
  return files;
}

struct Damage {
  std::mt19937 random{2024};

  size_t below(size_t n) { return size_t(random() % n); }

  Bytes operator()(int number, const std::vector<Bytes>& files) {
    Bytes bytes = files[size_t(number) % files.size()];
    switch (number / int(files.size()) % 3) {
      case 0:  // half of the flips hit the headers in the first bytes
        for (size_t flips = 1 + below(6); flips > 0; --flips) {
          const size_t reach = random() % 2 == 0 ? std::min<size_t>(bytes.size(), 64) : bytes.size();
          bytes[below(reach)] ^= uint8_t(1 + random() % 255);
        }
        break;
      case 1:  // the end or a chunk of the middle is missing
        if (random() % 2 == 0) {
          bytes.resize(below(bytes.size()));
        } else {
          const size_t from = below(bytes.size()), count = std::min(1 + below(200), bytes.size() - from);
          bytes.erase(bytes.begin() + long(from), bytes.begin() + long(from + count));
        }
        break;
      default: {  // the beginning of one file and the end of another
        const Bytes& other = files[below(files.size())];
        bytes.resize(below(bytes.size()));
        bytes.insert(bytes.end(), other.begin() + long(below(other.size())), other.end());
      }
    }
    return bytes;
  }
};

// The decoded image, or nothing if decoding throws a one-line Error. Any other exception fails the test.
template <class Decode>
std::optional<Image> try_decode(const Decode& decode, int& decoded, int& rejected) {
  try {
    std::optional<Image> image = decode();
    EXPECT_EQ(image->pixels.size(), size_t(image->height * image->width * image->channels));
    ++decoded;
    return image;
  } catch (const Error& error) {
    const std::string_view text = error.what();
    EXPECT_EQ(text.find('\n'), text.npos) << text;
    EXPECT_NE(text.find("damaged.img"), text.npos) << "does not name the file: " << text;
    ++rejected;
    return {};
  }
}

TEST(DamagedFiles, EveryDecoder_ReturnsAnImageOrThrows) {
  constexpr int count = 1000;
  const std::vector<Bytes> files = valid_files();
  Damage damage;
  int decoded[3] = {}, rejected[3] = {};
  for (int number = 0; number < count; ++number) {
    SCOPED_TRACE(number);
    const Bytes bytes = damage(number, files);
    ImageInfo info{};
    PixelBox box{0, 0, 1, 1};
    try {
      info = read_image_info(bytes, "damaged.img", options);
      box.x = int64_t(damage.below(size_t(info.width)));
      box.y = int64_t(damage.below(size_t(info.height)));
      box.width = 1 + int64_t(damage.below(size_t(info.width - box.x)));
      box.height = 1 + int64_t(damage.below(size_t(info.height - box.y)));
    } catch (const Error&) {
      info = {};
    }
    const auto whole =
        try_decode([&] { return decode_image(bytes, "damaged.img", options); }, decoded[0], rejected[0]);
    const auto region = try_decode([&] { return decode_region(bytes, "damaged.img", box, options); },
                                   decoded[1], rejected[1]);
    const auto scaled = try_decode([&] { return decode_scaled(bytes, "damaged.img", box, 4, 4, options); },
                                   decoded[2], rejected[2]);
    if (whole) {
      EXPECT_EQ((ImageInfo{whole->height, whole->width, whole->channels}), info);
      EXPECT_TRUE(region && *region == copy(crop(*whole, box)));
      EXPECT_TRUE(scaled.has_value());
    }
    if (region) {
      EXPECT_EQ((ImageInfo{region->height, region->width, region->channels}),
                (ImageInfo{box.height, box.width, info.channels}));
      EXPECT_TRUE(scaled.has_value());
    }
    EXPECT_TRUE(!scaled || (scaled->width <= box.width && scaled->height <= box.height));
  }
  for (int way = 0; way < 3; ++way) {
    EXPECT_EQ(decoded[way] + rejected[way], count) << way;
    EXPECT_GT(decoded[way], 50) << "pixels without a checksum: " << way;
    EXPECT_GT(rejected[way], 500) << way;
  }
  EXPECT_GE(decoded[1], decoded[0]);
}

}  // namespace
}  // namespace tandem
