#include "tandem/report/confusion.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace tandem {
namespace {

TEST(Confusion, Pairs_ByCountThenShareOfTheTrueClass) {
  const std::vector<std::int64_t> counts{90, 2, 8,   // 100 images
                                         0,  0, 0,   // none
                                         2,  8, 0};  // 10 images
  const Confusion confusion = read_confusion(counts);
  ASSERT_EQ(confusion.pairs.size(), 4u);
  const std::vector<std::array<std::size_t, 2>> expected{{2, 1}, {0, 2}, {2, 0}, {0, 1}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(confusion.pairs[i].truth, expected[i][0]) << i;
    EXPECT_EQ(confusion.pairs[i].predicted, expected[i][1]) << i;
    EXPECT_EQ(confusion.pairs[i].count, i < 2 ? 8 : 2);
  }
  EXPECT_EQ(confusion.images, 110);
  EXPECT_EQ(confusion.correct, 90);
  EXPECT_DOUBLE_EQ(confusion.worst_share, 0.8);
  EXPECT_EQ(confusion.classes[0].confused_with, 2u);
  EXPECT_EQ(confusion.classes[1].confused, 0);
}

}  // namespace
}  // namespace tandem
