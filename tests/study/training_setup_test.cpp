#include "tandem/study/training_setup.h"

#include <gtest/gtest.h>

#include "tandem/data/synthetic/digits.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

std::string problem(const StudyOptions& options) {
  return error_text([&] { training_setup("workers", options, digits_split(10, 10)); });
}

TEST(TrainingSetup, Defaults_FitTheData) {
  const TrainingSetup setup = training_setup("augment", {}, digits_split(10, 10));
  EXPECT_EQ(setup.network(), "784,200,10");
  EXPECT_EQ(setup.recipe, digits_recipe());
  ASSERT_EQ(setup.settings().size(), 3u);
  EXPECT_EQ(setup.settings()[0].value, "digits");
}

TEST(TrainingSetup, LayersThatDoNotFit_Throw) {
  EXPECT_EQ(problem({.layers = {700, 10}}),
            "[study workers] expected layers from 784 inputs (28x28 gray images) to 10 classes, got 700,10");
  EXPECT_EQ(problem({.layers = {784, 20, 9}}),
            "[study workers] expected layers from 784 inputs (28x28 gray images) to 10 classes, got "
            "784,20,9");
  const std::string text = problem({.layers = {784, 1 << 24, 1 << 24, 10}});
  EXPECT_EQ(text.find("[study workers] case \"784,16777216,16777216,10\" needs about "), 0u) << text;
}

TEST(TrainingSetup, RecipeWithoutEffectOrForPhotographs_Throws) {
  const std::string expected =
      "[study workers] expected operations for images of one size, such as \"rotate -10 10, shift -2 2\", "
      "got ";
  EXPECT_EQ(problem({.augment = Transform()}), expected + "\"none\"");
  const Transform photo = Transform::parse("photo");
  EXPECT_EQ(problem({.augment = photo}), expected + "\"" + photo.to_string() + "\"");
}

}  // namespace
}  // namespace tandem
