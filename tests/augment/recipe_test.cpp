// The bounds of recipes.
#include "tandem/augment/recipe.h"
#include "tandem/augment/transform.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/augment/augment_case.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(Recipe, InvalidBounds_Throw) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_text([] {
              compose({random_rotate({2, 1})});
            }),
            "[augment] rotate: expected the lower bound first, got 2 to 1");
  EXPECT_EQ(error_text([] {
              compose({random_shift({0, 0}, {5, 4})});
            }),
            "[augment] shift: expected the lower bound first, got 5 to 4");
  for (const double bad : {nan, infinite, 36001.0}) {
    EXPECT_NE(error_text([=] {
                compose({random_rotate({0, bad})});
              }).find("[augment] rotate: expected degrees from -36000 to 36000, got 0 to "),
              std::string::npos);
    EXPECT_NE(error_text([=] {
                compose({random_skew({-bad, 0})});
              }).find("[augment] skew: expected a tilt"),
              std::string::npos);
  }
  EXPECT_EQ(error_text([] { Transform::parse("rotate nan nan").pixels(); }),
            "[augment] rotate: expected degrees from -36000 to 36000, got nan to nan");
  EXPECT_EQ(error_text([] { Transform::parse("shift 0 1.5").pixels(); }),
            "[augment] shift: expected whole pixels from -65536 to 65536, got 0 to 1.5");
  EXPECT_EQ(error_text([] { Transform::parse("shift 0 1 0 65537").pixels(); }),
            "[augment] shift: expected whole pixels from -65536 to 65536, got 0 to 65537");
  for (const char* text : {"noise -0.1 0", "noise 0 1.1"})
    EXPECT_NE(error_text([=] {
                Transform::parse(text).pixels();
              }).find("expected a fraction of full scale from 0 to 1"),
              std::string::npos);
}

TEST(Recipe, InvalidZoomsCropsFlipsAndBlurs_Throw) {
  const auto error = [](const char* text) { return error_text([=] { Transform::parse(text); }); };
  EXPECT_EQ(error("zoom 0.2 1"), "[augment] zoom: expected a factor from 0.25 to 100, got 0.2 to 1");
  EXPECT_EQ(error("zoom 2 1"), "[augment] zoom: expected the lower bound first, got 2 to 1");
  EXPECT_EQ(error("noise 0 1, crop 0 1"),
            "[augment] crop: expected a fraction of the area from 1e-06 to 1, got 0 to 1");
  EXPECT_EQ(error("noise 0 1, flip 2"), "[augment] flip: expected a probability from 0 to 1, got 2");
  EXPECT_EQ(error("blur -1 ring"), "[augment] blur: expected a probability from 0 to 1, got -1");
  EXPECT_EQ(error("blur 1 rings"),
            "[augment] blur: expected one of sobel1, sobel2, sobel3, sobel4, ring, got 'rings'; did you mean "
            "'ring'?");
  EXPECT_EQ(error("blur 1 1 2; 3"), "[filter] expected kernel rows of equal length, got 2 and 1 numbers");
  EXPECT_EQ(error("blur 1 1 2 3 4 5 6"), "[augment] blur: expected a kernel of 1x1 to 5x5, got 1x6");
  for (const char* text : {"blur 1 0.5", "blur 1 1001", "blur 1 -1001 1"})
    EXPECT_EQ(
        error(text).find("[augment] blur: expected whole numbers from -1000 to 1000 in the kernel, got "), 0U)
        << error(text);
  EXPECT_EQ(error("blur 1 0 -1"), "[augment] blur: expected a kernel with a number above 0");
  BlurKernel large{.height = 1, .width = 1};
  large.weights[0] = 2000;
  EXPECT_EQ(error_text([&] { compose({random_blur(1, large)}); }),
            "[augment] blur: expected whole numbers from -1000 to 1000 in the kernel, got 2000");
}

TEST(Recipe, MoreThanSixteenOperations_Throw) {
  std::string text = "skew 0 1";
  for (int i = 1; i < 16; ++i) text += ", skew 0 1";
  EXPECT_EQ(Transform::parse(text).pixels().count, 16);
  EXPECT_EQ(error_text([&] { Transform::parse(text + ", skew 0 1").pixels(); }),
            "[augment] expected at most 16 operations, got 17");
}

}  // namespace
}  // namespace tandem
