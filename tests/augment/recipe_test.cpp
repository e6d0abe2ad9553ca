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
    EXPECT_NE(error_text([=] { Transform::parse(text).pixels(); }).find("expected a fraction of full scale from 0 to 1"),
              std::string::npos);
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
