#include "tandem/train/class_weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/error_text.h"

namespace tandem {
namespace {

using Values = std::vector<double>;

TEST(ClassWeights, Text_IsParsedAndWrittenBack) {
  for (const char* const text : {"none", "balanced", "cat=2", "cat=2,dog=0.5,a=b=0"})
    EXPECT_EQ(ClassWeights::parse(text).to_string(), text);
  EXPECT_TRUE(ClassWeights::parse("none").empty());
  EXPECT_EQ(ClassWeights::parse("a=b=1e-3").named.front(), (std::pair<std::string, double>("a=b", 0.001)));
}

TEST(ClassWeights, BadText_IsAnError) {
  const auto error = [](const std::string& text) { return error_text([&] { ClassWeights::parse(text); }); };
  for (const std::string text : {"", "cat", "cat=", "=2", "cat=two", "cat=2,", "Balanced"})
    EXPECT_EQ(error(text), "expected none, balanced or weights such as cat=2,dog=0.5, got '" + text + "'");
  EXPECT_EQ(error("cat=-1"), "expected a finite weight of 0 or more for 'cat', got -1");
  EXPECT_EQ(error("cat=1,cat=2"), "expected one weight for each class, got two for 'cat'");
  for (const char* const text : {"cat=nan", "cat=inf"}) EXPECT_NE(error(text), "") << text;
}

TEST(ClassWeights, Balanced_CountEveryClassTheSame) {
  const Values values = ClassWeights{.balanced = true}.values({"a", "b", "none", "c"}, {60, 30, 0, 10});
  EXPECT_EQ(values, (Values{100.0 / 180, 100.0 / 90, 1, 100.0 / 30}));
  EXPECT_EQ(ClassWeights::parse("b=3").values({"a", "b"}, {1, 1}), (Values{1, 3}));
}

TEST(ClassWeights, ThatDoNotFitTheData_AreErrors) {
  const auto error = [](const ClassWeights& weights) {
    return error_text([&] { weights.values({"cat", "dog"}, {3, 0}); });
  };
  EXPECT_EQ(error(ClassWeights::parse("dogs=2")),
            "[train] class_weights: the data has no class 'dogs'; did you mean 'dog'?");
  EXPECT_EQ(error(ClassWeights::parse("cat=0,dog=2")),
            "[train] class_weights: expected a weight above 0 for a class that has training images");
  EXPECT_EQ(error({.named = {{"cat", -2}}}),
            "[train] class_weights: expected a finite weight of 0 or more for 'cat', got -2");
  EXPECT_EQ(error({.named = {{"cat", std::nan("")}}}),
            "[train] class_weights: expected a finite weight of 0 or more for 'cat', got nan");
  EXPECT_EQ(error({.balanced = true, .named = {{"cat", 1}}}),
            "[train] expected balanced class_weights or named ones, got both");
}

}  // namespace
}  // namespace tandem
