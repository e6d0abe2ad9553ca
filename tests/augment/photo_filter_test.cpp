// Compares filters with their definition, implemented here as plain loops over doubles.
#include "tandem/augment/photo_filter.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tandem/image/contact_sheet.h"
#include "tandem/image/example_photo.h"
#include "tests/core/error_text.h"
#include "tests/device/device_cases.h"

namespace tandem {
namespace {

using Matrix = std::vector<std::vector<double>>;

struct Definition {
  const char* name;
  Matrix kernel;
  bool gradient;
};

const Definition definitions[] = {
    {"sobel1", {{1, 0, -1}, {2, 0, -2}, {1, 0, -1}}, true},
    {"sobel2", {{3, 0, -3}, {10, 0, -10}, {3, 0, -3}}, true},
    {"sobel3", {{1, 0, -1}, {2, 0, -2}, {1, 0, -1}, {2, 0, -2}, {1, 0, -1}}, true},
    {"sobel4",
     {{1, 0, 0, 0, -1}, {2, 0, 0, 0, -2}, {1, 0, 0, 0, -1}, {2, 0, 0, 0, -2}, {1, 0, 0, 0, -1}},
     true},
    {"ring", {{1, 1, 1}, {1, 0, 1}, {1, 1, 1}}, false},
};

const std::pair<int, int> sizes[] = {{1, 1}, {1, 9}, {9, 1}, {2, 2}, {3, 5}, {17, 33}, {40, 23}};

Image noise(std::int64_t height, std::int64_t width, int channels) {
  Image image = make_image(height, width, channels);
  std::mt19937 random(5);
  for (std::uint8_t& value : image.pixels) value = static_cast<std::uint8_t>(random());
  return image;
}

Matrix transposed(const Matrix& m) {
  Matrix t(m[0].size(), std::vector<double>(m.size()));
  for (std::size_t i = 0; i < m.size(); ++i)
    for (std::size_t j = 0; j < m[i].size(); ++j) t[j][i] = m[i][j];
  return t;
}

std::vector<double> correlated(const Image& gray, const Matrix& kernel) {
  const auto rows = static_cast<std::int64_t>(kernel.size());
  const auto columns = static_cast<std::int64_t>(kernel[0].size());
  std::vector<double> out;
  for (std::int64_t y = 0; y < gray.height; ++y)
    for (std::int64_t x = 0; x < gray.width; ++x) {
      double sum = 0;
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
          const std::int64_t from_y = y + i - rows / 2, from_x = x + j - columns / 2;
          if (from_y >= 0 && from_y < gray.height && from_x >= 0 && from_x < gray.width)
            sum += kernel[i][j] * gray.at(from_y, from_x);
        }
      out.push_back(sum);
    }
  return out;
}

std::vector<double> response(const Image& gray, const Matrix& kernel, bool gradient) {
  std::vector<double> out = correlated(gray, kernel);
  if (!gradient) return out;
  const std::vector<double> down = correlated(gray, transposed(kernel));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::sqrt(out[i] * out[i] + down[i] * down[i]);
  return out;
}

// Within half a level of the definition, because results are rounded.
void expect_image(const Image& image, const Image& gray, const std::vector<double>& values) {
  ASSERT_EQ(image.height, gray.height);
  ASSERT_EQ(image.width, gray.width);
  ASSERT_EQ(image.channels, 1);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double level = *high > *low ? 255 * (values[i] - *low) / (*high - *low) : 0;
    ASSERT_NEAR(image.pixels[i], level, 0.5 + 1e-3) << "pixel " << i;
  }
}

class PhotoFilterTest : public testing::TestWithParam<Device> {};

TEST_P(PhotoFilterTest, EveryBuiltInFilter_EqualsItsDefinition) {
  ASSERT_EQ(builtin_filters().rows().size(), std::size(definitions));
  for (const Definition& definition : definitions)
    for (const auto& [height, width] : sizes) {
      SCOPED_TRACE(testing::Message() << definition.name << " on " << height << "x" << width);
      const Image gray = noise(height, width, 1);
      const PhotoFilter& filter = builtin_filters().get(definition.name);
      EXPECT_EQ(filter.gradient, definition.gradient);
      expect_image(apply_filter(gray, filter, GetParam()), gray,
                   response(gray, definition.kernel, definition.gradient));
    }
}

TEST_P(PhotoFilterTest, AnyKernel_WorksAsCorrelationAndAsGradient) {
  const Image gray = noise(13, 21, 1);
  const std::pair<const char*, Matrix> kernels[] = {
      {"2", {{2}}},
      {"1 -1", {{1, -1}}},
      {"0.5; -0.25; 4", {{0.5}, {-0.25}, {4}}},
      {"1 2; 3 4; 5 6; 7 8", {{1, 2}, {3, 4}, {5, 6}, {7, 8}}},
  };
  for (const auto& [text, kernel] : kernels)
    for (const bool gradient : {false, true}) {
      SCOPED_TRACE(testing::Message() << text << (gradient ? ", gradient" : ""));
      expect_image(apply_filter(gray, parse_filter(text, gradient), GetParam()), gray,
                   response(gray, kernel, gradient));
    }
}

TEST_P(PhotoFilterTest, KernelLargerThanThePhoto_EqualsItsDefinition) {
  const Image gray = noise(3, 2, 1);
  const Matrix kernel(7, std::vector<double>(9, 1.0));
  std::string text;
  for (int row = 0; row < 7; ++row) text += "1 1 1 1 1 1 1 1 1;";
  expect_image(apply_filter(gray, parse_filter(text, false), GetParam()), gray,
               response(gray, kernel, false));
}

TEST_P(PhotoFilterTest, MinimumIsBlackAndMaximumIsWhite) {
  Image gray = make_image(1, 3, 1);
  gray.pixels = {100, 110, 120};
  EXPECT_EQ(apply_filter(gray, parse_filter("1", false), GetParam()).pixels,
            (std::vector<std::uint8_t>{0, 128, 255}));
  EXPECT_EQ(apply_filter(gray, parse_filter("-1", false), GetParam()).pixels,
            (std::vector<std::uint8_t>{255, 128, 0}));
}

TEST_P(PhotoFilterTest, ConstantResponse_IsBlack) {
  Image gray = make_image(4, 6, 1);
  std::fill(gray.pixels.begin(), gray.pixels.end(), std::uint8_t{200});
  const Image image = apply_filter(gray, parse_filter("1", false), GetParam());
  EXPECT_EQ(image.pixels, std::vector<std::uint8_t>(24, 0));
}

TEST_P(PhotoFilterTest, ColorPhoto_IsConvertedToGray) {
  const Image photo = noise(11, 8, 3);
  const Image gray = to_gray(photo);
  for (const PhotoFilter& filter : builtin_filters().rows())
    EXPECT_EQ(apply_filter(photo, filter, GetParam()), apply_filter(gray, filter, GetParam()));
}

TEST_P(PhotoFilterTest, Sheet_ShowsThePhotoAndEveryFilter) {
  const Image photo = example_photo(40, 60);
  std::vector<LabeledImage> images = {{photo, "photograph"}};
  for (const Definition& definition : definitions) {
    std::string label = definition.name;
    for (const auto& row : definition.kernel) label += fmt::format("\n{}", fmt::join(row, "  "));
    images.push_back({apply_filter(photo, builtin_filters().get(definition.name), GetParam()), label});
  }
  EXPECT_EQ(filter_sheet(photo, GetParam()), contact_sheet(images, {.columns = 3}));
}

INSTANTIATE_TEST_SUITE_P(Devices, PhotoFilterTest, testing::ValuesIn(test_devices()), device_name);

TEST(ParseFilter, ReadsRowsAndNumbers) {
  const auto expect_kernel = [](const char* text, const Shape& shape, const std::vector<float>& values) {
    const PhotoFilter filter = parse_filter(text, true);
    EXPECT_EQ(filter.kernel.shape(), shape) << text;
    EXPECT_EQ(filter.kernel.to_vector<float>(), values) << text;
    EXPECT_TRUE(filter.gradient);
  };
  expect_kernel("1 0 -1; 2 0 -2; 1 0 -1", {3, 3}, {1, 0, -1, 2, 0, -2, 1, 0, -1});
  expect_kernel("1,2;3,4;", {2, 2}, {1, 2, 3, 4});
  expect_kernel("  +1.5\t-2e-3\n", {1, 2}, {1.5f, -2e-3f});
  expect_kernel("1;2;3", {3, 1}, {1, 2, 3});
  EXPECT_FALSE(parse_filter("1", false).gradient);
}

TEST(ParseFilter, InvalidText_Throws) {
  const auto expect_error = [](const std::string& text, const std::string& message) {
    EXPECT_EQ(error_text([&] { parse_filter(text, false); }), message) << text;
  };
  expect_error("1 2; 3", "[filter] expected kernel rows of equal length, got 2 and 1 numbers");
  expect_error("1 2;;3 4", "[filter] expected kernel rows of equal length, got 2 and 0 numbers");
  expect_error("1 x 3", "[filter] expected numbers in the kernel, got 'x'");
  expect_error("1 +-3", "[filter] expected numbers in the kernel, got '+-3'");
  expect_error("1 nan", "[filter] expected numbers in the kernel, got 'nan'");
  expect_error("1e99", "[filter] expected numbers in the kernel, got '1e99'");
  expect_error("inf", "[filter] expected numbers in the kernel, got 'inf'");
  expect_error("1x2", "[filter] expected numbers in the kernel, got '1x2'");
  expect_error("0x10", "[filter] expected numbers in the kernel, got '0x10'");
  expect_error("", "[filter] expected a kernel such as \"1 0 -1; 2 0 -2; 1 0 -1\", got ''");
  expect_error(";", "[filter] expected a kernel such as \"1 0 -1; 2 0 -2; 1 0 -1\", got ';'");
}

TEST(BuiltinFilter, UnknownName_Throws) {
  EXPECT_EQ(
      error_text([] { builtin_filters().get("Sobel1"); }),
      "[filter] expected one of sobel1, sobel2, sobel3, sobel4, ring, got 'Sobel1'; did you mean 'sobel1'?");
}

}  // namespace
}  // namespace tandem
