// Copies of pictures are recognized by their hashes and a comparison; pictures that look alike are not
// copies.
#include "tandem/image/picture_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tandem/data/synthetic/plates.h"
#include "tandem/image/example_photo.h"
#include "tandem/image/resize.h"
#include "tandem/image/resize_area.h"
#include "tandem/image/same_picture.h"
#include "tandem/image/save_image.h"
#include "tests/image/jpeg_writer.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

int min_distance(const PictureHashes& a, const PictureHashes& b) {
  int distance = 999;
  for (const PictureHash& hash : a) distance = std::min(distance, hamming_distance(hash, b[0]));
  for (const PictureHash& hash : b) distance = std::min(distance, hamming_distance(hash, a[0]));
  return distance;
}

Image compared(const Image& image) {
  return resize_area(to_rgb(image), compared_side, compared_side);
}

bool is_copy(const Image& a, const Image& b) {
  return min_distance(hash_picture(a), hash_picture(b)) <= max_copy_distance &&
         is_same_picture(compared(a), compared(b));
}

// Shares of the sides are cut off.
Image cropped(const Image& image, double left, double top, double right, double bottom) {
  const auto w = double(image.width), h = double(image.height);
  return copy(crop(image, {int64_t(w * left), int64_t(h * top), int64_t(w * (1 - left - right)),
                           int64_t(h * (1 - top - bottom))}));
}

std::vector<Image> copies_of(const Image& image) {
  const int64_t h = image.height, w = image.width;
  std::vector<Image> copies{resize(image, h / 2, w / 2),         resize(image, h * 4 / 3, w * 4 / 3),
                            resize(image, h * 4 / 5, w * 3 / 5), cropped(image, .01, .01, .01, .01),
                            cropped(image, .02, 0, 0, 0),        cropped(image, 0, 0, .02, .02),
                            cropped(image, .02, .02, .02, .02),  cropped(image, 0, .02, 0, .02)};
  for (const int quality : {30, 60, 80})
    copies.push_back(decode_image(write_jpeg(image, {.quality = quality}), "copy"));
  const Image small = resize(cropped(image, .02, .02, 0, 0), h * 3 / 5, w * 3 / 5);
  copies.push_back(decode_image(write_jpeg(small, {.quality = 60}), "copy"));
  return copies;
}

TEST(PictureHash, Parts_AreAllBitsOfTheHash) {
  PictureHash hash;
  for (int bit = 0; bit < PictureHash::parts * PictureHash::part_bits; ++bit) {
    hash.words[size_t(bit / 64)] = std::uint64_t{1} << (bit % 64);
    for (int part = 0; part < PictureHash::parts; ++part)
      EXPECT_EQ(hash.part(part),
                part == bit / PictureHash::part_bits ? 1U << (bit % PictureHash::part_bits) : 0U)
          << bit << " " << part;
    hash.words[size_t(bit / 64)] = 0;
  }
}

TEST(PictureHash, Size_HardlyMatters) {
  const Image photo = example_photo(400, 600);
  const PictureHashes hashes = hash_picture(photo);
  for (const auto& [height, width] : {std::pair{200, 300}, {48, 72}, {1000, 400}})
    EXPECT_LE(hamming_distance(hash_picture(resize(photo, height, width))[0], hashes[0]), 6) << height;
  EXPECT_GT(std::popcount(hashes[0].words[0]), 10);
}

TEST(PictureHash, TinyAndBlankImages_HaveHashes) {
  for (const auto& [height, width] : {std::pair{1, 1}, {1, 500}, {300, 2}, {480, 480}})
    EXPECT_EQ(hash_picture(make_image(height, width, 1))[0], PictureHash{}) << height << "x" << width;
  EXPECT_NE(error_text([] { hash_picture(Image{}); }).find("expected an image with pixels"),
            std::string::npos);
}

TEST(PictureHash, ReducedDecode_IsACopy) {
  const Image photo = example_photo(500, 500);
  const std::vector<uint8_t> jpeg = write_jpeg(photo, {});
  const Image reduced = decode_scaled(jpeg, "photo", {0, 0, 500, 500}, 48, 48, {.rgb = true});
  EXPECT_EQ(reduced.width, 63);
  EXPECT_LE(hamming_distance(hash_picture(photo)[0], hash_picture(reduced, 62.5, 62.5)[0]), 6);
}

TEST(PictureHash, CopiesOfPlates_AreFound) {
  for (std::uint64_t i = 0; i < 12; ++i) {
    const Image plate = render_plate(3, i, i % 2 == 0, 160);
    const std::vector<Image> copies = copies_of(plate);
    for (size_t k = 0; k < copies.size(); ++k)
      EXPECT_TRUE(is_copy(plate, copies[k])) << "plate " << i << ", copy " << k;
  }
}

TEST(PictureHash, DifferentPlates_AreNoCopies) {
  constexpr size_t count = 120;
  std::vector<Image> plates;
  std::vector<PictureHashes> hashes;
  for (size_t i = 0; i < count; ++i) {
    const Image plate = render_plate(4, i / 2, i % 2 == 0, 96);  // clean and dirty alternate
    plates.push_back(compared(plate));
    hashes.push_back(hash_picture(plate));
  }
  for (size_t i = 0; i < count; ++i)
    for (size_t k = 0; k < i; ++k)
      EXPECT_FALSE(min_distance(hashes[i], hashes[k]) <= max_copy_distance &&
                   is_same_picture(plates[i], plates[k]))
          << i << " " << k;
}

TEST(SamePicture, OtherColorsOrOneChangedPlace_AreDifferent) {
  const Image photo = compared(example_photo(400, 600));
  EXPECT_TRUE(is_same_picture(photo, photo));
  Image swapped = photo;
  for (size_t i = 0; i < swapped.pixels.size(); i += 3) std::swap(swapped.pixels[i], swapped.pixels[i + 2]);
  EXPECT_FALSE(is_same_picture(photo, swapped));
  Image marked = photo;
  for (int64_t y = 30; y < 38; ++y)
    for (int64_t x = 30; x < 38; ++x)
      for (int c = 0; c < 3; ++c) marked.at(y, x, c) = uint8_t(marked.at(y, x, c) < 128 ? 220 : 20);
  EXPECT_FALSE(is_same_picture(photo, marked));
  Image mirrored = photo;
  for (int64_t y = 0; y < 64; ++y)
    for (int64_t x = 0; x < 64; ++x)
      for (int c = 0; c < 3; ++c) mirrored.at(y, x, c) = photo.at(y, 63 - x, c);
  EXPECT_FALSE(is_same_picture(photo, mirrored));
}

TEST(SamePicture, BlankImages_AreTheSameOnlyInTheSameColor) {
  const Image black = make_image(64, 64, 3);
  Image gray = black;
  std::ranges::fill(gray.pixels, uint8_t{4});
  EXPECT_TRUE(is_same_picture(black, black));
  EXPECT_FALSE(is_same_picture(black, gray));
}

TEST(SamePicture, OtherSizes_AreRefused) {
  EXPECT_NE(error_text([] {
              is_same_picture(make_image(64, 64, 3), make_image(64, 63, 3));
            }).find("expected RGB images of 64x64, got 63x64 with 3 channels"),
            std::string::npos);
}

}  // namespace
}  // namespace tandem
