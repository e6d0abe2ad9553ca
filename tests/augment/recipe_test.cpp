// Parsing and printing recipes, and invalid ones.
#include "tandem/augment/recipe.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/augment/augment_case.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(Recipe, ToStringThenParse_IsTheSameRecipe) {
  for (const char* text :
       {"none", "rotate -12 12", "rotate 0 360 cubic", "rotate -0.5 0.25 nearest", "shift -2 2",
        "shift -2 2 0 7", "skew -0.1 0.1", "noise 0 0.125",
        "shift 1 1, rotate 0.1 0.30000000000000004, skew 0 1, noise 1 1, rotate -36000 36000 cubic"})
    EXPECT_EQ(to_string(parse_recipe(text)), text);
  for (std::uint32_t i = 0; i < 200; ++i) {
    const Recipe recipe = random_recipe(i, true);
    EXPECT_EQ(parse_recipe(to_string(recipe)), recipe) << to_string(recipe);
  }
}

TEST(Recipe, Parse_ReturnsTheNamedOperations) {
  EXPECT_EQ(parse_recipe("none"), Recipe{});
  EXPECT_EQ(parse_recipe("digits"), digits_recipe());
  EXPECT_FALSE(digits_recipe().empty());
  EXPECT_EQ(parse_recipe(" shift -2\t2 ,rotate 1 2 cubic,noise 0 .5,skew -1e-1 1e-1"),
            compose({random_shift({-2, 2}, {-2, 2}), random_rotate({1, 2}, Interpolation::cubic),
                     random_noise({0, 0.5}), random_skew({-0.1, 0.1})}));
  EXPECT_EQ(parse_recipe("shift 1 2 3 4"), compose({random_shift({1, 2}, {3, 4})}));
}

TEST(Recipe, InvalidText_Throws) {
  const char* const form =
      "[augment] expected operations such as 'rotate -12 12, shift -2 2, skew -0.1 0.1, noise 0 0.1', got '";
  for (const char* text :
       {"turn 1 2", "rotate", "rotate 1", "rotate 1 2 3", "rotate 1 2 quintic", "rotate cubic 1 2",
        "shift 1 2 3", "shift 1 2 nearest", "skew 1 x", "noise 0 0.1x", "rotates 1 2", "rotate 1 +2"})
    EXPECT_EQ(error_text([&] { parse_recipe(text); }), std::string(form) + text + "'");
  for (const char* text : {"", ",", ",,"})
    EXPECT_EQ(
        error_text([&] { parse_recipe(text); }),
        std::string("[augment] expected none, digits or operations with their bounds, got '") + text + "'");
}

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
  EXPECT_EQ(error_text([] { parse_recipe("rotate nan nan"); }),
            "[augment] rotate: expected degrees from -36000 to 36000, got nan to nan");
  EXPECT_EQ(error_text([] { parse_recipe("shift 0 1.5"); }),
            "[augment] shift: expected whole pixels from -65536 to 65536, got 0 to 1.5");
  EXPECT_EQ(error_text([] { parse_recipe("shift 0 1 0 65537"); }),
            "[augment] shift: expected whole pixels from -65536 to 65536, got 0 to 65537");
  for (const char* text : {"noise -0.1 0", "noise 0 1.1"})
    EXPECT_NE(error_text([=] { parse_recipe(text); }).find("expected a fraction of full scale from 0 to 1"),
              std::string::npos);
}

TEST(Recipe, MoreThanSixteenOperations_Throw) {
  std::string text = "skew 0 1";
  for (int i = 1; i < 16; ++i) text += ", skew 0 1";
  EXPECT_EQ(parse_recipe(text).count, 16);
  EXPECT_EQ(error_text([&] { parse_recipe(text + ", skew 0 1"); }),
            "[augment] expected at most 16 operations, got 17");
}

}  // namespace
}  // namespace tandem
