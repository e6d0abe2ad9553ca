#include "tandem/data/synthetic/digits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <string>

#include "tandem/core/parallel.h"
#include "tandem/data/synthetic/digit_strokes.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

std::vector<std::uint8_t> pixels_of(const ImageSet& set) {
  return set.images.to_vector<std::uint8_t>();
}
std::vector<std::int32_t> labels_of(const ImageSet& set) {
  return set.labels.to_vector<std::int32_t>();
}

TEST(Digits, IsAValidSet) {
  const ImageSet set = make_digits(37, 1);
  EXPECT_NO_THROW(check_image_set(set, "digits"));
  EXPECT_EQ(set.images.shape(), (Shape{37, 28, 28, 1}));
  EXPECT_EQ(set.classes.size(), 10u);
  EXPECT_EQ(set.classes[7], "7");
  const ImageSet none = make_digits(0, 1);
  EXPECT_NO_THROW(check_image_set(none, "digits"));
  EXPECT_EQ(none.count(), 0);
}

TEST(Digits, AnyNumberOfThreads_GivesTheSameBits) {
  const ImageSet many = make_digits(1000, 5);
  const ThreadLimit one(1);
  const ImageSet alone = make_digits(1000, 5);
  EXPECT_EQ(pixels_of(many), pixels_of(alone));
  EXPECT_EQ(labels_of(many), labels_of(alone));
}

TEST(Digits, PartOfTheSet_GivesTheSameBits) {
  const ImageSet whole = make_digits(500, 5, 100);
  for (const auto& [begin, end] : {std::pair{0, 1}, {3, 70}, {123, 456}, {499, 500}}) {
    const ImageSet part = make_digits(end - begin, 5, 100 + begin);
    EXPECT_EQ(pixels_of(part), pixels_of(whole.slice(begin, end)));
    EXPECT_EQ(labels_of(part), labels_of(whole.slice(begin, end)));
  }
}

TEST(Digits, SeedsAndIndices_GiveDifferentImages) {
  const ImageSet a = make_digits(1500, 1), b = make_digits(1500, 2);
  EXPECT_NE(labels_of(a), labels_of(b));
  std::set<std::string> images;
  for (const ImageSet& set : {a, b, make_digits(1500, 1 + (std::uint64_t{1} << 32))})
    for (std::int64_t i = 0; i < set.count(); ++i) {
      const auto pixels = pixels_of(set.slice(i, i + 1));
      images.emplace(pixels.begin(), pixels.end());
    }
  EXPECT_EQ(images.size(), 4500u);
}

TEST(Digits, EveryTenImages_HoldEachDigitOnceInRandomOrder) {
  const auto labels = labels_of(make_digits(10000, 3));
  std::vector<int> at_zero(10);  // positions of the digit 0
  for (std::size_t ten = 0; ten < labels.size(); ten += 10) {
    std::vector<std::int32_t> order(labels.begin() + ten, labels.begin() + ten + 10);
    ++at_zero[static_cast<std::size_t>(std::find(order.begin(), order.end(), 0) - order.begin())];
    std::sort(order.begin(), order.end());
    for (std::int32_t digit = 0; digit < 10; ++digit)
      ASSERT_EQ(order[static_cast<std::size_t>(digit)], digit);
  }
  for (const int count : at_zero) EXPECT_NEAR(count, 100, 50);
}

TEST(Digits, Levels_AreLikeMnistWithAnEmptyBorder) {
  const ImageSet set = make_digits(2000, 9);
  const auto pixels = pixels_of(set);
  double sum = 0, rim = 0;
  std::size_t black = 0;
  for (std::size_t at = 0; at < pixels.size(); ++at) {
    const std::size_t x = at % 28, y = at / 28 % 28;
    sum += pixels[at];
    black += pixels[at] < 20;
    if (x == 0 || x == 27 || y == 0 || y == 27) rim += pixels[at];
  }
  const auto total = static_cast<double>(pixels.size());
  EXPECT_NEAR(sum / total, 32, 6);  // MNIST: 33
  EXPECT_GT(static_cast<double>(black) / total, 0.7);
  EXPECT_LT(rim / (2000 * 108), 3);
  for (std::int64_t i = 0; i < set.count(); ++i) {  // each has ink, and a stroke is not the whole image
    const auto image = pixels_of(set.slice(i, i + 1));
    const auto ink = std::count_if(image.begin(), image.end(), [](std::uint8_t v) { return v > 100; });
    EXPECT_GE(ink, 8) << i;
    EXPECT_LE(ink, 400) << i;
  }
}

// The mean image of a digit is close to that of other samples of the same digit and far from those of others.
TEST(Digits, MeanImages_MatchTheirLabels) {
  const auto mean_images = [](const ImageSet& set) {
    std::vector<std::vector<double>> means(10, std::vector<double>(784));
    const auto pixels = pixels_of(set);
    const auto labels = labels_of(set);
    for (std::size_t i = 0; i < labels.size(); ++i)
      for (std::size_t at = 0; at < 784; ++at)
        means[static_cast<std::size_t>(labels[i])][at] += pixels[784 * i + at];
    return means;
  };
  const auto here = mean_images(make_digits(3000, 1)), there = mean_images(make_digits(3000, 2));
  const auto distance = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::transform_reduce(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                                 [](double x, double y) { return (x - y) * (x - y); });
  };
  for (std::size_t a = 0; a < 10; ++a)
    for (std::size_t b = 0; b < 10; ++b) {
      if (a == b) continue;
      EXPECT_LT(4 * distance(here[a], there[a]), distance(here[a], there[b])) << a << " " << b;
    }
}

TEST(Digits, Strokes_StayInTheGrid) {
  for (int digit = 0; digit < 10; ++digit)
    for (const DigitStyle& style : digit_styles(digit)) {
      EXPECT_GE(style.strokes[0].size(), 2u);
      for (const auto& stroke : style.strokes) {
        EXPECT_LE(stroke.size(), max_stroke_points);
        for (const GridPoint& point : stroke) {
          EXPECT_TRUE(point.x >= 0 && point.x <= 100 && point.y >= 0 && point.y <= 100) << digit;
        }
      }
    }
}

TEST(Digits, TestImagesDoNotDependOnTheTrainingSet) {
  const DataSplit small = digits_split(10, 50, 4), large = digits_split(300, 50, 4);
  EXPECT_EQ(small.name, "digits");
  EXPECT_EQ(small.train.count(), 10);
  EXPECT_EQ(large.train.count(), 300);
  EXPECT_EQ(pixels_of(small.test), pixels_of(large.test));
  EXPECT_EQ(pixels_of(small.train), pixels_of(large.train.slice(0, 10)));
  EXPECT_NE(pixels_of(small.test.slice(0, 10)), pixels_of(small.train));
}

TEST(Digits, RangeOutsideTheSet_Throws) {
  EXPECT_EQ(error_text([] { (void)make_digits(-1, 1); }),
            "[digits] expected image indices from 0 to below 4294967296, got -1 images from index 0");
  EXPECT_NE(error_text([] { (void)make_digits(1, 1, -1); }), "");
  EXPECT_NE(error_text([] { (void)make_digits(2, 1, 4294967295); }), "");
  EXPECT_NE(error_text([] { (void)make_digits(std::int64_t{1} << 62, 1, std::int64_t{1} << 62); }), "");
  EXPECT_NE(error_text([] { (void)digits_split(-1); }), "");
  EXPECT_NE(error_text([] { (void)digits_split(1, std::int64_t{1} << 40); }), "");
  EXPECT_EQ(make_digits(1, 1, 4294967295).count(), 1);
}

}  // namespace
}  // namespace tandem
