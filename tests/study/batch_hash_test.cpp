#include "tandem/study/batch_hash.h"

#include <gtest/gtest.h>

#include "tests/data/loader_cases.h"

namespace tandem {
namespace {

const BatchPlan plan{.samples = 50, .batch_size = 4, .seed = 3};

BatchHashes hashes_of(const std::vector<Loaded>& images, const std::vector<std::int64_t>& counts) {
  BatchHashes hashes(plan, 12 * 9);
  std::int64_t first = 0;
  for (const std::int64_t count : counts) {
    std::vector<std::uint8_t> pixels;
    std::vector<std::int32_t> samples, labels;
    for (std::int64_t i = first; i < first + count; ++i) {
      const Loaded& one = images[static_cast<std::size_t>(i)];
      pixels.insert(pixels.end(), one.pixels.begin(), one.pixels.end());
      samples.push_back(one.sample);
      labels.push_back(one.label);
    }
    hashes.add({0, first, count, pixels.data(), samples.data(), labels.data()});
    first += count;
  }
  return hashes;
}

TEST(BatchHashes, BlockSizes_DoNotChangeHashes) {
  const ImageSet set = small_set(50);
  const std::vector<Loaded> images = expected_epoch(set, plan, test_recipe(), 0);
  const BatchHashes one = hashes_of(images, {50});
  EXPECT_EQ(one.batches().size(), 13u);
  EXPECT_EQ(one.images(), 50);
  EXPECT_EQ(hashes_of(images, {4, 20, 24, 2}).batches(), one.batches());
  Loader loader(detail::sample_store(set), plan, test_recipe(), {.workers = 2});
  BatchHashes loaded(plan, set.image_size());
  loaded.add(loader, {0, 0, 12});
  loaded.add(loader, {0, 12, 50});
  EXPECT_EQ(loaded.batches(), one.batches());
  EXPECT_EQ(loaded.combined(), one.combined());
}

TEST(BatchHashes, AnyBitFlip_ChangesHash) {
  const std::vector<Loaded> images = expected_epoch(small_set(50), plan, test_recipe(), 0);
  const BatchHashes expected = hashes_of(images, {50});
  const auto difference = [&](auto&& change) {
    std::vector<Loaded> changed = images;
    change(changed);
    const BatchHashes got = hashes_of(changed, {50});
    EXPECT_NE(got.combined(), expected.combined());
    return first_difference(expected.batches(), got.batches());
  };
  EXPECT_EQ(difference([](auto& all) { all[9].pixels[107] ^= 1; }), 2);
  EXPECT_EQ(difference([](auto& all) { all[49].label ^= 1; }), 12);
  EXPECT_EQ(difference([](auto& all) { all[4].sample ^= 1; }), 1);
  EXPECT_EQ(difference([](auto& all) { std::swap(all[16], all[17]); }), 4);
}

TEST(BatchHashes, FirstDifference) {
  EXPECT_EQ(first_difference({"a", "b"}, {"a", "b"}), -1);
  EXPECT_EQ(first_difference({"a", "b"}, {"a", "c"}), 1);
  EXPECT_EQ(first_difference({"a", "b"}, {"a"}), 1);
  EXPECT_EQ(first_difference({"a"}, {"a", "b"}), 1);
}

}  // namespace
}  // namespace tandem
