#include "tandem/report/curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tandem {
namespace {

TEST(Curve, FewPoints_AreKept) {
  Curve curve(4);
  EXPECT_TRUE(curve.empty());
  EXPECT_FALSE(curve.last());
  for (int i = 1; i <= 4; ++i) curve.add(i, 10 - i);
  const auto points = curve.points();
  ASSERT_EQ(points.size(), 4U);
  for (int i = 1; i <= 4; ++i) {
    EXPECT_EQ(points[static_cast<std::size_t>(i - 1)].x, i);
    EXPECT_EQ(points[static_cast<std::size_t>(i - 1)].y, 10 - i);
  }
  EXPECT_EQ(curve.last()->x, 4);
}

TEST(Curve, PointsThatAreNotFinite_AreLeftOut) {
  Curve curve;
  curve.add(1, std::nan(""));
  curve.add(2, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(curve.empty());
  curve.add(3, 1);
  EXPECT_EQ(curve.points().size(), 1U);
}

// For every number of points: bounded, in order, and with the lowest and the highest.
TEST(Curve, ManyPoints_AreBoundedAndKeepPeaks) {
  for (const std::size_t buckets : {2U, 3U, 7U, 8U})
    for (int count = 1; count < 300; ++count) {
      Curve curve(buckets);
      for (int i = 1; i <= count; ++i) curve.add(i, i == 17 ? 5 : i == 23 ? -5 : std::sin(i));
      const auto points = curve.points();
      ASSERT_LE(points.size(), 2 * buckets);
      ASSERT_GE(points.size(), std::min<std::size_t>(static_cast<std::size_t>(count), buckets / 2));
      double low = 9, high = -9;
      for (std::size_t i = 0; i < points.size(); ++i) {
        ASSERT_TRUE(i == 0 || points[i - 1].x < points[i].x);
        low = std::min(low, points[i].y);
        high = std::max(high, points[i].y);
      }
      ASSERT_TRUE(count < 17 || high == 5) << buckets << " " << count;
      ASSERT_TRUE(count < 23 || low == -5) << buckets << " " << count;
      ASSERT_EQ(curve.last()->x, count);
    }
}

// Later points are not shown in more detail than earlier ones.
TEST(Curve, ManyPoints_AreSpreadEvenly) {
  Curve curve(64);
  for (int i = 1; i <= 100'000; ++i) curve.add(i, i);  // of each bucket the first and the last point
  const auto points = curve.points();
  ASSERT_GE(points.size(), 64U);
  for (std::size_t i = 0; i + 2 < points.size(); i += 2) EXPECT_EQ(points[i + 1].x - points[i].x, 2047) << i;
}

}  // namespace
}  // namespace tandem
