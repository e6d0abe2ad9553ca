#include "tandem/core/shape.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(Shape, Numel_IsTheProductOfTheSizes) {
  EXPECT_EQ(Shape().numel(), 1);
  EXPECT_EQ((Shape{}).rank(), 0);
  EXPECT_EQ((Shape{2, 3, 4}).numel(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).numel(), 0);
  EXPECT_EQ((Shape{2, 3}).to_string(), "[2, 3]");
  EXPECT_EQ((Shape{}).to_string(), "[]");
}

TEST(Shape, Equality_ComparesRankAndSizes) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_NE((Shape{}), (Shape{1}));
}

TEST(Shape, InvalidSizes_Throw) {
  EXPECT_EQ(error_text([] { Shape{2, -1}; }), "[shape] expected sizes of 0 or more, got [2, -1]");
  EXPECT_EQ(error_text([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }),
            "[shape] expected at most 8 dimensions, got 9");
  const std::int64_t big = std::int64_t{1} << 32;
  EXPECT_EQ(error_text([&] {
              Shape{big, big};
            }),
            "[shape] [4294967296, 4294967296] has more elements than 63 bits can count");
}

TEST(Shape, SizeZero_NeverOverflows) {
  const std::int64_t big = std::int64_t{1} << 40;
  EXPECT_EQ((Shape{big, big, 0}).numel(), 0);
  EXPECT_EQ((Shape{0, big, big}).numel(), 0);
}

TEST(Shape, ContiguousStrides_AreRowMajor) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), (Dims{}));
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (Dims{1, 1, 1}));
  const std::int64_t big = std::int64_t{1} << 40;
  EXPECT_EQ(contiguous_strides({0, big, big}).rank(),
            3);  // must not overflow
}

TEST(Shape, NormalizeAxis_CountsFromEitherEnd) {
  EXPECT_EQ(normalize_axis(0, 3, "op"), 0);
  EXPECT_EQ(normalize_axis(-1, 3, "op"), 2);
  EXPECT_EQ(normalize_axis(-3, 3, "op"), 0);
  EXPECT_EQ(error_text([] { normalize_axis(3, 3, "sum"); }), "[sum] expected an axis from -3 to 2, got 3");
  EXPECT_EQ(error_text([] { normalize_axis(-4, 3, "sum"); }), "[sum] expected an axis from -3 to 2, got -4");
}

TEST(Shape, BroadcastShapes_FollowsNumPy) {
  const auto broadcast = [](const Shape& a, const Shape& b) { return broadcast_shapes(a, b, "add"); };
  EXPECT_EQ(broadcast({3, 4}, {4}), (Shape{3, 4}));
  EXPECT_EQ(broadcast({}, {2, 2}), (Shape{2, 2}));
  EXPECT_EQ(broadcast({3, 1}, {1, 4}), (Shape{3, 4}));
  EXPECT_EQ(broadcast({5, 1, 4}, {3, 1}), (Shape{5, 3, 4}));
  EXPECT_EQ(broadcast({0}, {1}), (Shape{0}));
  EXPECT_EQ(error_text([&] {
              broadcast({2, 3}, {2});
            }),
            "[add] expected shapes that broadcast together, got [2, 3] and [2]");
  EXPECT_EQ(error_text([&] { broadcast({0}, {2}); }),
            "[add] expected shapes that broadcast together, got [0] and [2]");
}

TEST(Shape, BroadcastShapes_Overflow_Throws) {
  const std::int64_t big = std::int64_t{1} << 32;
  EXPECT_EQ(error_text([&] {
              broadcast_shapes({big, 1}, {1, big}, "add");
            }),
            "[shape] [4294967296, 4294967296] has more elements than 63 bits can count");
}

}  // namespace
}  // namespace tandem
