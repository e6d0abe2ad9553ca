#include "tandem/data/shuffle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tandem {
namespace {

std::vector<std::uint32_t> order_of(const Shuffle& shuffle) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < shuffle.count(); ++i) order.push_back(shuffle(i));
  return order;
}

void expect_permutation(std::uint32_t count, std::uint64_t seed, std::uint32_t epoch) {
  std::vector<int> seen(count);
  for (const std::uint32_t sample : order_of(Shuffle(count, seed, epoch))) {
    ASSERT_LT(sample, count);
    ASSERT_EQ(++seen[sample], 1) << "sample " << sample << " of " << count << " comes twice";
  }
}

// Pearson's chi-square of `counts` against equal shares, in standard deviations from its expected value.
double deviation(const std::vector<int>& counts, int total) {
  const double share = static_cast<double>(total) / static_cast<double>(counts.size());
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - share) * (count - share) / share;
  const double freedom = static_cast<double>(counts.size()) - 1;
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

TEST(Shuffle, VisitsEverySampleOnce) {
  for (std::uint32_t count = 1; count <= 70; ++count)
    for (std::uint64_t seed = 0; seed < 20; ++seed) expect_permutation(count, seed, 3);
  for (const std::uint32_t count : {1000u, 1023u, 1024u, 1025u, 60000u, 65536u, 65537u})
    expect_permutation(count, 42, 0);
}

TEST(Shuffle, ReachesTheLargestCounts) {
  const Shuffle shuffle(0xFFFFFFFFu, 1, 0);
  for (const std::uint32_t position : {0u, 1u, 0x80000000u, 0xFFFFFFFEu})
    EXPECT_LT(shuffle(position), 0xFFFFFFFFu);
}

TEST(Shuffle, Order_DependsOnSeedEpochAndPass) {
  const auto base = order_of(Shuffle(1000, 7, 0));
  EXPECT_EQ(order_of(Shuffle(1000, 7, 0)), base);
  for (const Shuffle& other : {Shuffle(1000, 8, 0), Shuffle(1000, 7, 1), Shuffle(1000, 7, 0, 1),
                               Shuffle(1000, 7 + (std::uint64_t{1} << 32), 0)}) {
    int same = 0;
    for (std::uint32_t i = 0; i < 1000; ++i) same += other(i) == base[i];
    EXPECT_LT(same, 8);  // expected by chance: 1
  }
}

TEST(Shuffle, EveryPosition_IsUniformOverSeeds) {
  constexpr int seeds = 20000;
  for (const std::uint32_t count : {2u, 3u, 4u, 5u, 7u, 8u, 10u, 16u, 17u, 33u, 64u, 100u})
    for (const std::uint32_t position : {0u, count / 2, count - 1}) {
      std::vector<int> landed(count);
      for (std::uint64_t seed = 0; seed < seeds; ++seed) ++landed[Shuffle(count, seed, 0)(position)];
      EXPECT_LT(deviation(landed, seeds), 5) << "count " << count << ", position " << position;
    }
}

TEST(Shuffle, PairsOfPositions_AreIndependent) {
  constexpr int seeds = 50000;
  for (const std::uint32_t count : {3u, 4u, 5u, 8u, 10u, 16u, 21u}) {
    std::vector<int> pairs(count * (count - 1));
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const Shuffle shuffle(count, seed, 0);
      const std::uint32_t first = shuffle(0), second = shuffle(1);
      ++pairs[first * (count - 1) + second - (second > first ? 1 : 0)];
    }
    EXPECT_LT(deviation(pairs, seeds), 5) << "count " << count;
  }
}

TEST(Shuffle, FourSamples_HaveAllOrdersEquallyOften) {
  constexpr int seeds = 48000;
  std::vector<int> orders(256);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto order = order_of(Shuffle(4, seed, 0));
    ++orders[order[0] | order[1] << 2 | order[2] << 4 | order[3] << 6];
  }
  std::erase(orders, 0);
  ASSERT_EQ(orders.size(), 24u);
  EXPECT_LT(deviation(orders, seeds), 5);
}

// The distances of neighboring positions' samples are those of random pairs.
TEST(Shuffle, Neighbors_AreIndependent) {
  constexpr std::uint32_t count = 60000;
  const Shuffle shuffle(count, 5, 2);
  std::vector<int> steps(60);
  for (std::uint32_t i = 0; i + 1 < count; ++i) ++steps[(shuffle(i + 1) + count - shuffle(i)) % count / 1000];
  EXPECT_LT(deviation(steps, static_cast<int>(count) - 1), 5);
}

constexpr std::uint32_t sum_of(const Shuffle& shuffle) {
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < shuffle.count(); ++i) sum += shuffle(i);
  return sum;
}
static_assert(sum_of(Shuffle(20, 9, 1)) == 190, "an order can be computed by the compiler");

}  // namespace
}  // namespace tandem
