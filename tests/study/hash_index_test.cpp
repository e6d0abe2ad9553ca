// The search for near hashes, against comparing all.
#include "tandem/study/check/hash_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace tandem {
namespace {

constexpr int bits = PictureHash::parts * PictureHash::part_bits;

void flip(PictureHash& hash, int bit) {
  hash.words[static_cast<std::size_t>(bit / 64)] ^= std::uint64_t{1} << (bit % 64);
}

PictureHash random_hash(std::mt19937& random, double share_of_ones) {
  PictureHash hash;
  std::bernoulli_distribution one(share_of_ones);
  for (int bit = 0; bit < bits; ++bit)
    if (one(random)) flip(hash, bit);
  return hash;
}

// `count` different bits are changed.
PictureHash changed(PictureHash hash, int count, std::mt19937& random) {
  std::set<int> at;
  while (std::ssize(at) < count) at.insert(static_cast<int>(random() % bits));
  for (const int bit : at) flip(hash, bit);
  return hash;
}

std::vector<std::uint32_t> all_near(const std::vector<PictureHash>& hashes, const PictureHash& hash) {
  std::vector<std::uint32_t> near;
  for (std::size_t i = 0; i < hashes.size(); ++i)
    if (hamming_distance(hash, hashes[i]) <= max_copy_distance) near.push_back(static_cast<std::uint32_t>(i));
  return near;
}

TEST(HashIndex, Found_AreAllNearHashes) {
  std::mt19937 random(5);
  std::vector<PictureHash> hashes;
  for (const double share : {0.5, 0.1, 0.03})  // of pictures with plain backgrounds, few bits are set
    for (int i = 0; i < 300; ++i) {
      hashes.push_back(random_hash(random, share));
      for (const int distance : {0, 1, 14, 26, 27, 28, 40})
        if (i % 5 == 0) hashes.push_back(changed(hashes.back(), distance, random));
    }
  const HashIndex index(hashes);
  std::size_t pairs = 0;
  for (const PictureHash& hash : hashes) {
    std::vector<std::uint32_t> found;
    EXPECT_TRUE(index.find(hash, hashes.size() + 1, found));
    std::ranges::sort(found);
    EXPECT_EQ(found, all_near(hashes, hash));
    pairs += found.size();
  }
  EXPECT_GT(pairs, 3 * hashes.size());
}

TEST(HashIndex, WorstDistribution_IsFound) {
  // The 27 changed bits leave no part unchanged but in one bit: two in each part, one in the last.
  std::mt19937 random(6);
  const PictureHash hash = random_hash(random, 0.5);
  PictureHash other = hash;
  for (int part = 0; part < PictureHash::parts; ++part) {
    flip(other, part * PictureHash::part_bits + 3);
    if (part + 1 < PictureHash::parts) flip(other, part * PictureHash::part_bits + 16);
  }
  ASSERT_EQ(hamming_distance(hash, other), max_copy_distance);
  const std::vector<PictureHash> hashes{other};
  std::vector<std::uint32_t> found;
  EXPECT_TRUE(HashIndex(hashes).find(hash, 10, found));
  EXPECT_EQ(found, std::vector<std::uint32_t>{0});
}

TEST(HashIndex, Limit_EndsTheSearch) {
  const std::vector<PictureHash> hashes(1000);
  const HashIndex index(hashes);
  std::vector<std::uint32_t> found{7};
  EXPECT_FALSE(index.find({}, 5, found));
  EXPECT_EQ(found.size(), 6U);
}

TEST(HashIndex, Empty_FindsNothing) {
  std::vector<std::uint32_t> found;
  EXPECT_TRUE(HashIndex({}).find({}, 5, found));
  EXPECT_TRUE(found.empty());
}

}  // namespace
}  // namespace tandem
