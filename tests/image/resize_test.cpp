// Exact comparison with Pillow (tests/golden/make_resize.py) and with the definition in resize_weights.h.
#include "tandem/image/resize.h"

#include <gtest/gtest.h>

#include <random>

#include "tandem/image/resize_kernel.h"
#include "tandem/image/resize_weights.h"
#include "tests/core/error_text.h"
#include "tests/golden/golden.h"

namespace tandem {
namespace {

using detail::resize_into;
using detail::ResizeScratch;

Image image_of(const golden::Array& array) {
  return {array.shape[0], array.shape[1], int(array.shape[2]), array.values<uint8_t>()};
}

TEST(Resize, EqualsPillow) {
  const std::vector<golden::Case> cases = golden::load("resize");
  EXPECT_GE(2 * cases.size(), 40u);
  ResizeScratch scratch;  // shared, so that a stale table from another size is detected
  for (const golden::Case& one : cases)
    for (const auto& [name, filter] :
         {std::pair{"bilinear", ResizeFilter::bilinear}, std::pair{"bicubic", ResizeFilter::bicubic}}) {
      const Image in = image_of(one.array("in")), expected = image_of(one.array(name));
      ImageView view = in;
      if (one.params.contains("x"))
        view = crop(view, {one.params["x"], one.params["y"], one.params["width"], one.params["height"]});
      Image out = make_image(expected.height, expected.width, expected.channels);
      resize_into(view, out.height, out.width, out.pixels.data(), filter, scratch);
      EXPECT_TRUE(out == expected) << one.name << ", " << name;
    }
}

// One pixel at a time, directly from the weights.
Image by_definition(const Image& in, int64_t height, int64_t width, ResizeFilter filter) {
  const auto level = [&](int64_t side, int64_t out, int64_t i, const auto& at) {
    const detail::ResizeTaps taps = detail::resize_taps(filter, side, out, i);
    double total = 0;
    for (int64_t k = 0; k < taps.count; ++k) total += taps.weight(k);
    int32_t sum = 1 << (detail::resize_weight_bits - 1);
    for (int64_t k = 0; k < taps.count; ++k)
      sum += detail::fixed_resize_weight(taps.weight(k) / total) * at(taps.first + k);
    return detail::resized_level(sum);
  };
  Image resampled = make_image(in.height, width, in.channels), out = make_image(height, width, in.channels);
  for (int c = 0; c < in.channels; ++c) {
    for (int64_t y = 0; y < in.height; ++y)
      for (int64_t x = 0; x < width; ++x)
        resampled.at(y, x, c) = level(in.width, width, x, [&](int64_t k) { return in.at(y, k, c); });
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x)
        out.at(y, x, c) = level(in.height, height, y, [&](int64_t k) { return resampled.at(k, x, c); });
  }
  return out;
}

Image noise(int64_t height, int64_t width, int channels, std::mt19937& random) {
  Image image = make_image(height, width, channels);
  for (uint8_t& value : image.pixels) value = uint8_t(random());
  return image;
}

TEST(Resize, RandomShapes_EqualTheDefinition) {
  std::mt19937 random(3);
  for (int round = 0; round < 120; ++round) {
    const auto side = [&](unsigned max_side) { return int64_t(1 + random() % max_side); };
    const Image in = noise(side(90), side(90), round % 2 == 0 ? 1 : 3, random);
    const int64_t height = side(60), width = side(60);
    const ResizeFilter filter = round % 3 == 0 ? ResizeFilter::bicubic : ResizeFilter::bilinear;
    EXPECT_TRUE(resize(in, height, width, filter) == by_definition(in, height, width, filter))
        << in.height << "x" << in.width << "x" << in.channels << " to " << height << "x" << width;
  }
}

TEST(Resize, SameSize_EqualsTheDefinition) {
  std::mt19937 random(4);
  for (const auto& [height, width] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {1, 9}, {33, 47}, {64, 16}})
    for (const int channels : {1, 3})
      for (const ResizeFilter filter : {ResizeFilter::bilinear, ResizeFilter::bicubic}) {
        const Image in = noise(height + 2, width + 3, channels, random);
        const ImageView view = crop(in, {.x = 1, .y = 2, .width = width, .height = height});
        const Image out = resize(view, height, width, filter);
        EXPECT_TRUE(out == copy(view) && out == by_definition(copy(view), height, width, filter))
            << width << "x" << height << ", " << channels << " channels";
      }
}

TEST(Resize, View_EqualsItsCopy) {
  std::mt19937 random(4);
  const Image in = noise(61, 83, 3, random);
  for (const PixelBox box :
       {PixelBox{0, 0, 83, 61}, PixelBox{82, 60, 1, 1}, PixelBox{3, 5, 40, 50}, PixelBox{20, 0, 63, 2}}) {
    const ImageView view = crop(in, box);
    EXPECT_TRUE(resize(view, 21, 33) == resize(copy(view), 21, 33)) << box.x << " " << box.y;
  }
}

TEST(Resize, Mirrored_FlipsTheResult) {
  std::mt19937 random(6);
  for (const int channels : {1, 3}) {
    const Image in = noise(37, 53, channels, random);
    const Image expected = resize(in, 20, 31);
    Image out = make_image(20, 31, channels);
    ResizeScratch scratch;  // shared: a table for one must not be used for the other
    for (const bool mirrored : {false, true, false}) {
      resize_into(in, 20, 31, out.pixels.data(), ResizeFilter::bilinear, scratch, mirrored);
      for (int64_t y = 0; y < 20; ++y)
        for (int64_t x = 0; x < 31; ++x)
          for (int c = 0; c < channels; ++c)
            ASSERT_EQ(out.at(y, x, c), expected.at(y, mirrored ? 30 - x : x, c)) << y << " " << x;
    }
  }
}

TEST(Resize, WritesNothingBeyondItsOutput) {
  std::mt19937 random(5);
  const Image in = noise(37, 41, 3, random);
  for (const int64_t width : {1, 5, 16, 23}) {
    std::vector<uint8_t> out(size_t(19 * width * 3) + 64, 77);
    ResizeScratch scratch;
    resize_into(in, 19, width, out.data(), ResizeFilter::bilinear, scratch);
    for (size_t i = out.size() - 64; i < out.size(); ++i) ASSERT_EQ(out[i], 77) << width;
  }
}

TEST(Resize, InvalidArguments_Throw) {
  const Image in = make_image(4, 6, 3);
  EXPECT_EQ(error_text([&] { resize(in, 0, 3); }), "[resize] expected sides of at least 1, got 6x4 to 3x0");
  EXPECT_EQ(error_text([&] { resize(Image{}, 2, 2); }), "[image] expected 1 or 3 channels, got 0");
}

}  // namespace
}  // namespace tandem
