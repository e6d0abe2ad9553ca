// The counter-based random number generator Philox4x32-10 (Salmon et al. 2011). It has no state: equal
// counters and keys give the same four words on every device and in every order of evaluation.
#pragma once

#include <cstdint>

namespace tandem {

// A counter, or the four random words of one block.
struct Words4 {
  std::uint32_t word[4];
};

constexpr Words4 philox(Words4 counter, std::uint64_t key) {
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  std::uint32_t c0 = counter.word[0], c1 = counter.word[1], c2 = counter.word[2], c3 = counter.word[3];
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * c0;
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ key0;
    c1 = static_cast<std::uint32_t>(product1);
    c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ key1;
    c3 = static_cast<std::uint32_t>(product0);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// philox() of `count` consecutive counters: the first word is incremented, the others stay the same. Blocks
// are written in whole groups, so `words` must have space for `count` rounded up to a multiple of
// philox_group.
inline constexpr std::uint32_t philox_group = 16;
void philox_blocks(const Words4& counter, std::uint64_t key, std::uint32_t count, std::uint32_t* words);

// Block number `block` of a random stream. A tensor fill uses word i % 4 of block i / 4 for element i.
constexpr Words4 random_block(std::uint64_t seed, std::uint64_t stream, std::uint64_t block) {
  return philox({{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                  static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)}},
                seed);
}

// Identifies the random numbers of one operation on one sample. block(index) gives four of them at a time.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint32_t sample = 0;
  std::uint32_t operation = 0;

  constexpr Words4 block(std::uint32_t index) const { return philox(counter(index), seed); }
  constexpr Words4 counter(std::uint32_t index) const { return {{index, operation, sample, epoch}}; }
};

// Uniform in [0, 1): 24 random bits as f32, 53 as f64. Exact, so equal on every device.
constexpr float to_unit_float(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}
constexpr double to_unit_double(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

// Uniform in [0, bound). The bias is negligible for bound ≪ 2³².
constexpr std::uint32_t to_below(std::uint32_t word, std::uint32_t bound) {
  return static_cast<std::uint32_t>((std::uint64_t{word} * bound) >> 32);
}

}  // namespace tandem
