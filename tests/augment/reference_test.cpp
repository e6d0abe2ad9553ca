// Compares the definitions with SciPy and with plain loops (tests/golden/make_augment.py).
#include "tandem/augment/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "tests/core/error_text.h"
#include "tests/golden/golden.h"

namespace tandem {
namespace {

FloatImage image_of(const golden::Array& array) {
  return {.size = {.height = static_cast<int>(array.shape[0]),
                   .width = static_cast<int>(array.shape[1]),
                   .channels = static_cast<int>(array.shape[2])},
          .values = array.values<float>()};
}

FloatImage result_of(const golden::Case& one) {
  const FloatImage image = image_of(one.array("image"));
  const auto& params = one.params;
  const std::string op = params.at("op");
  if (op == "rotate")
    return rotate(image, params.at("degrees"), static_cast<Interpolation>(params.at("order").get<int>()));
  if (op == "shift") return shift(image, params.at("dx"), params.at("dy"));
  if (op == "skew") return skew(image, params.at("tilt"));
  if (op == "zoom")
    return zoom(image, params.at("factor"), static_cast<Interpolation>(params.at("order").get<int>()));
  if (op == "crop") return crop(image, params.at("fraction"), params.at("left"), params.at("top"));
  if (op == "flip") return flip(image);
  if (op == "blur") return blur(image, blur_kernel(params.at("kernel").get<std::string>()));
  return add_noise(image, params.at("amount"),
                   {.seed = params.at("seed"),
                    .epoch = params.at("epoch"),
                    .sample = params.at("sample"),
                    .operation = params.at("operation")});
}

TEST(Reference, EqualsTheGoldenCases) {
  std::map<std::string, int> counts;
  for (const golden::Case& one : golden::load("augment")) {
    const std::vector<float> expected = one.array("expected").values<float>();
    const FloatImage result = result_of(one);
    ASSERT_EQ(result.values.size(), expected.size()) << one.name;
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(result.values[i], expected[i], 1e-4f) << one.name << " at " << i;
    ++counts[one.params.at("op")];
  }
  for (const char* op : {"rotate", "shift", "skew", "add_noise", "zoom", "crop", "blur"})
    EXPECT_GE(counts[op], 40) << op;
  EXPECT_EQ(counts["flip"], 10);
}

TEST(Reference, Noise_IsUniformAndClipped) {
  const FloatImage image{.size = {.height = 100, .width = 100}, .values = std::vector<float>(10000, 0.75f)};
  const FloatImage noisy = add_noise(image, 0.5, {.seed = 3});
  int below = 0, full = 0;
  for (const float value : noisy.values) {
    EXPECT_GE(value, 0.25f);
    EXPECT_LE(value, 1.0f);
    below += value < 0.75f;
    full += value == 1.0f;
  }
  EXPECT_NEAR(below, 5000, 200);
  EXPECT_NEAR(full, 2500, 200);
}

TEST(Reference, InvalidArguments_Throw) {
  const FloatImage image{.size = {.height = 2, .width = 2}, .values = {1, 2, 3, 4}};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(error_text([&] { rotate(image, nan); }),
            "[rotate] expected degrees from -36000 to 36000, got nan");
  EXPECT_EQ(error_text([&] { skew(image, nan); }), "[skew] expected a finite tilt, got nan");
  EXPECT_EQ(error_text([&] { add_noise(image, 1.5, {}); }),
            "[add_noise] expected an amount from 0 to 1, got 1.5");
  EXPECT_EQ(error_text([&] { zoom(image, 0.2); }), "[zoom] expected a factor from 0.25 to 100, got 0.2");
  EXPECT_EQ(error_text([&] { crop(image, 2, 0, 0); }),
            "[crop] expected a fraction of the area from 1e-06 to 1, got 2");
  EXPECT_EQ(error_text([&] { crop(image, 1, -1, 0); }),
            "[crop] expected a position from 0 to 1, got -1 and 0");
  EXPECT_EQ(error_text([&] { blur(image, {}); }), "[augment] blur: expected a kernel of 1x1 to 5x5, got 0x0");
  EXPECT_EQ(error_text([&] { shift({.size = {.height = 2, .width = 2}, .values = {1}}, 1, 1); }),
            "[shift] expected an image of 2×2×1 values, got 1");
}

}  // namespace
}  // namespace tandem
