#include "tandem/core/did_you_mean.h"

#include <gtest/gtest.h>

#include <vector>

namespace tandem {
namespace {

using Names = std::vector<std::string>;

TEST(DidYouMean, EditDistance_CountsEditsAndExchanges) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("filter", "fliter"), 1);  // neighbors exchanged
  EXPECT_EQ(edit_distance("ca", "abc"), 3);         // a substring is not edited twice
  EXPECT_EQ(edit_distance("Batch_Size", "batch-size"), 0);
}

TEST(DidYouMean, ClosestName_MisspelledName_IsFound) {
  const Names names{"mlp", "cnn", "resnet18", "resnet34", "fashion-mnist"};
  EXPECT_EQ(closest_name("resnt34", names), "resnet34");
  EXPECT_EQ(closest_name("ResNet18", names), "resnet18");
  EXPECT_EQ(closest_name("resnet", names), "resnet18");  // the first of equals
  EXPECT_EQ(closest_name("fashion", names), "fashion-mnist");
  EXPECT_EQ(closest_name("cn", names), "cnn");
}

TEST(DidYouMean, ClosestName_UnrelatedName_IsNotGuessed) {
  const Names names{"max", "xxt", "correlation"};
  EXPECT_EQ(closest_name("sum", names), "");
  EXPECT_EQ(closest_name("", names), "");
  EXPECT_EQ(closest_name("c", names), "");
  EXPECT_EQ(closest_name(std::string(1 << 20, 'x'), names), "");
  EXPECT_EQ(closest_name("max", Names{}), "");
  EXPECT_EQ(closest_name("max", Names{"mix", "max"}), "") << "it is not misspelled";
}

TEST(DidYouMean, Text_EndsASentence) {
  EXPECT_EQ(did_you_mean("correlatoin", Names{"max", "correlation"}), "; did you mean 'correlation'?");
  EXPECT_EQ(did_you_mean("sum", Names{"max", "correlation"}), "");
}

}  // namespace
}  // namespace tandem
