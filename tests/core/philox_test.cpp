#include "tandem/core/philox.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace tandem {
namespace {

std::vector<std::uint32_t> words_of(const Words4& words) {
  return {words.word, words.word + 4};
}

// The known-answer vectors of Random123 for philox4x32-10.
TEST(Philox, MatchesTheRandom123Vectors) {
  using Words = std::vector<std::uint32_t>;
  EXPECT_EQ(words_of(philox({{0, 0, 0, 0}}, 0)), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(words_of(philox({{~0u, ~0u, ~0u, ~0u}}, ~std::uint64_t{0})),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words_of(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822)),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, IsConstexpr) {
  static_assert(philox({{0, 0, 0, 0}}, 0).word[0] == 0x6627e8d5);
}

TEST(Philox, RandomBlock_UsesStreamAndBlockAsCounter) {
  EXPECT_EQ(words_of(random_block(7, 5, 3)), words_of(philox({{3, 0, 5, 0}}, 7)));
  const std::uint64_t wide = (std::uint64_t{2} << 32) + 1;
  EXPECT_EQ(words_of(random_block(wide, wide, wide)), words_of(philox({{1, 2, 1, 2}}, wide)));
}

TEST(Philox, PhiloxBlocks_EqualSingleBlocks) {
  const Words4 counter{{0xfffffff0u, 0x85a308d3, 0x13198a2e, 0x03707344}};  // the first word wraps around
  for (const std::uint32_t count : {0u, 1u, 15u, 16u, 17u, 98u}) {
    const std::uint32_t capacity = (count + philox_group - 1) / philox_group * philox_group;
    std::vector<std::uint32_t> words(4 * capacity + 1, 7);
    philox_blocks(counter, 0x299f31d0a4093822, count, words.data());
    for (std::uint32_t i = 0; i < count; ++i) {
      Words4 own = counter;
      own.word[0] += i;
      EXPECT_EQ(std::vector<std::uint32_t>(words.begin() + 4 * i, words.begin() + 4 * i + 4),
                words_of(philox(own, 0x299f31d0a4093822)))
          << count << " blocks, block " << i;
    }
    EXPECT_EQ(words.back(), 7u) << count;
  }
}

TEST(Philox, RandomKey_EveryFieldChangesTheResult) {
  const RandomKey keys[] = {
      {}, {.seed = 1}, {.epoch = 1}, {.sample = 1}, {.operation = 1}, {.seed = std::uint64_t{1} << 32}};
  std::set<std::vector<std::uint32_t>> blocks;
  for (const RandomKey& key : keys)
    for (std::uint32_t index : {0, 1}) blocks.insert(words_of(key.block(index)));
  EXPECT_EQ(blocks.size(), 12u);
}

TEST(Philox, UnitNumbers_AreBelowOne) {
  EXPECT_EQ(to_unit_float(0), 0.0f);
  EXPECT_EQ(to_unit_float(~0u), 1.0f - 0x1p-24f);
  EXPECT_EQ(to_unit_double(0, 0), 0.0);
  EXPECT_EQ(to_unit_double(~0u, ~0u), 1.0 - 0x1p-53);
  EXPECT_EQ(to_unit_double(0x80000000u, 0), 0.5);
}

TEST(Philox, ToBelow_CoversItsRange) {
  EXPECT_EQ(to_below(0, 10), 0u);
  EXPECT_EQ(to_below(~0u, 10), 9u);
  EXPECT_EQ(to_below(0x80000000u, 10), 5u);
  EXPECT_EQ(to_below(~0u, 1), 0u);
}

}  // namespace
}  // namespace tandem
