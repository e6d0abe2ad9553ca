#include "tandem/image/ppm_view.h"

#include <gtest/gtest.h>

#include <string>

#include "tandem/image/decode.h"
#include "tandem/image/example_photo.h"

namespace tandem {
namespace {

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST(PpmView, EncodedImage_IsViewedAndDecodedAsTheSame) {
  const Image image = to_rgb(example_photo(7, 11));
  const std::string file = encode_ppm(image);
  const std::optional<ImageView> view = view_ppm(bytes_of(file), 77);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(copy(*view), image);
  EXPECT_EQ(decode_image(bytes_of(file), "file"), image);
  const std::string part = encode_ppm(crop(image, {2, 1, 5, 4}));
  EXPECT_EQ(decode_image(bytes_of(part), "part"), copy(crop(image, {2, 1, 5, 4})));
}

TEST(PpmView, OtherFiles_AreNotViewed) {
  const std::string file = encode_ppm(make_image(2, 3, 3));
  EXPECT_FALSE(view_ppm(bytes_of(file), 5).has_value());  // too many pixels
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(view_ppm(bytes_of(file.substr(0, size)), 100).has_value()) << size;
  for (const char* const other :
       {"P5 1 1 255 abc", "P6 1 1 254 abc", "P6 1 1 65535 abcdef", "P3 1 1 255 1 2 3", "P6 0 1 255 abc",
        "P6 99999999999 1 255 abc", "P6 1 1 255", "P61 1 255\nabc", "\x89PNG"})
    EXPECT_FALSE(view_ppm(bytes_of(other), 100).has_value()) << other;
  EXPECT_TRUE(view_ppm(bytes_of("P6 # text\n1 1 255\nabc"), 100).has_value());
}

}  // namespace
}  // namespace tandem
