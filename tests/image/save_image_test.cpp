#include "tandem/image/save_image.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tandem/core/error.h"
#include "tandem/image/decode.h"
#include "tandem/image/example_photo.h"
#include "tests/core/error_text.h"
#include "tests/image/test_files.h"

namespace tandem {
namespace {

TEST(SaveImage, LosslessFormats_RestoreThePixels) {
  const TempFolder folder;
  const Image photo = example_photo(17, 31);
  ASSERT_EQ(photo.channels, 3);
  for (const char* name : {"a.png", "a.ppm", "a.PPM"}) {
    save_image(folder / name, photo);
    EXPECT_EQ(load_image(folder / name), photo) << name;
  }
  save_image(folder / "a.pgm", photo);
  EXPECT_EQ(load_image(folder / "a.pgm"), to_gray(photo));
  save_image(folder / "gray.ppm", to_gray(photo));
  EXPECT_EQ(load_image(folder / "gray.ppm"), to_rgb(to_gray(photo)));
}

TEST(SaveImage, Jpeg_IsCloseForEveryShape) {
  for (const auto& [height, width] : {std::pair{1, 1}, {1, 9}, {9, 1}, {8, 16}, {37, 53}})
    for (const bool gray : {false, true}) {
      const Image photo = gray ? to_gray(example_photo(height, width)) : example_photo(height, width);
      const std::vector<uint8_t> bytes = encode_jpeg(photo, 100);
      const Image read = decode_image(bytes, "a.jpg");
      ASSERT_EQ(read.height, photo.height);
      ASSERT_EQ(read.width, photo.width);
      ASSERT_EQ(read.channels, photo.channels);
      for (std::size_t i = 0; i < photo.pixels.size(); ++i)
        EXPECT_NEAR(read.pixels[i], photo.pixels[i], 12) << i;
    }
  EXPECT_LT(encode_jpeg(example_photo(64, 64), 30).size(), encode_jpeg(example_photo(64, 64), 95).size());
}

TEST(SaveImage, BadImagesAndNames_Throw) {
  const TempFolder folder;
  EXPECT_EQ(error_text([&] { save_image("a.gif", example_photo(4, 4)); }),
            "[save_image] a.gif: expected a name that ends in one of .png, .jpg, .jpeg, .ppm, .pgm");
  EXPECT_EQ(error_text([&] { encode_jpeg({}); }),
            "[encode_jpeg] expected sides of 1 to 65500, got 0x0 (width x height)");
  EXPECT_EQ(error_text([&] { encode_jpeg(make_image(1, 65501, 1)); }),
            "[encode_jpeg] expected sides of 1 to 65500, got 65501x1 (width x height)");
  EXPECT_EQ(error_text([&] { encode_jpeg(example_photo(4, 4), 0); }),
            "[encode_jpeg] expected a quality from 1 to 100, got 0");
  EXPECT_NE(error_text([&] { save_image(folder / "a.ppm", Image{}); }), "no error");
  EXPECT_EQ(folder.count(), 0u);
  EXPECT_TRUE(is_image_name("x/y.JPeG"));
  EXPECT_FALSE(is_image_name("png"));
}

}  // namespace
}  // namespace tandem
