#include "tandem/image/exif.h"

#include <gtest/gtest.h>

#include "tests/image/test_files.h"

namespace tandem {
namespace {

using namespace std::string_view_literals;

int orientation(std::string_view block) {
  return exif_orientation(bytes_of(block));
}

constexpr auto big = "MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"sv;
constexpr auto little = "II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x08\0\0\0"sv;

TEST(Exif, ReadsBothByteOrders) {
  EXPECT_EQ(orientation(big), 6);
  EXPECT_EQ(orientation(little), 8);
  EXPECT_EQ(orientation(std::string("Exif\0\0", 6) + std::string(big)), 6);
}

TEST(Exif, FindsTheTagAfterOthers) {
  EXPECT_EQ(
      orientation("MM\0\x2a\0\0\0\x08\0\x02\x01\x0f\0\x02\0\0\0\x01zzzz\x01\x12\0\x03\0\0\0\x01\0\x03\0\0"sv),
      3);
}

TEST(Exif, InvalidBlock_IsUpright) {
  EXPECT_EQ(orientation(""), 1);
  EXPECT_EQ(orientation("hello, I am no TIFF header"), 1);
  EXPECT_EQ(orientation("MM\0\x2a\xff\xff\xff\xff\0\x01"sv), 1) << "directory outside the block";
  for (size_t length = 0; length < big.size(); ++length)
    EXPECT_EQ(orientation(big.substr(0, length)), 1) << length;
  std::string nine(big);
  nine[19] = 9;
  EXPECT_EQ(orientation(nine), 1);
  nine[19] = 0;
  EXPECT_EQ(orientation(nine), 1);
}

TEST(Exif, BlockWithoutOrientation_IsNotUpright) {
  EXPECT_EQ(find_exif_orientation(bytes_of(big)), 6);
  EXPECT_EQ(find_exif_orientation(bytes_of("MM\0\x2a\0\0\0\x08\0\x01\x01\x0f\0\x03\0\0\0\x01\0\x06\0\0"sv)),
            std::nullopt);
  std::string nine(big);
  nine[19] = 9;
  EXPECT_EQ(find_exif_orientation(bytes_of(nine)), 1) << "it says something, if wrong";
}

TEST(Exif, Xmp_AttributeAndElement) {
  EXPECT_EQ(find_xmp_orientation(R"(<rdf:Description tiff:Orientation="6">)"), 6);
  EXPECT_EQ(find_xmp_orientation("<rdf:Description tiff:Orientation='3'>"), 3);
  EXPECT_EQ(find_xmp_orientation("<tiff:Orientation>8</tiff:Orientation>"), 8);
  EXPECT_EQ(find_xmp_orientation("tiff:Orientation is a tag; tiff:Orientation=\"2\""), 2);
  EXPECT_EQ(find_xmp_orientation(R"(tiff:Orientation="9")"), 1);
  EXPECT_EQ(find_xmp_orientation(R"(tiff:Orientation=")"), 1);
  EXPECT_EQ(find_xmp_orientation("tiff:Orientation"), std::nullopt);
  EXPECT_EQ(find_xmp_orientation("<x:xmpmeta/>"), std::nullopt);
}

TEST(Exif, EveryOrientation_IsApplied) {
  Image image = make_image(2, 3, 1);
  image.pixels = {1, 2, 3,  //
                  4, 5, 6};
  const std::vector<uint8_t> expected[] = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1},
                                           {4, 5, 6, 1, 2, 3}, {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3},
                                           {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int o = 1; o <= 8; ++o) {
    const Image oriented = apply_orientation(image, o);
    EXPECT_EQ(oriented.pixels, expected[o - 1]) << o;
    EXPECT_EQ(oriented.height, o < 5 ? 2 : 3) << o;
    EXPECT_EQ(oriented.width, o < 5 ? 3 : 2) << o;
  }
}

}  // namespace
}  // namespace tandem
