// The order of an epoch as a function from position to sample: a permutation of [0, count) that host and
// device code evaluate at any position without a table (a Feistel network with cycle walking). No state is
// kept, so a run resumed in the middle of an epoch, or with another number of ranks, gets the same order.
#pragma once

#include <cstdint>

#include "tandem/core/philox.h"

namespace tandem {

class Shuffle {
 public:
  // `pass` counts the passes over the data within an epoch.
  constexpr Shuffle(std::uint32_t count, std::uint64_t seed, std::uint32_t epoch, std::uint32_t pass = 0)
      : count_(count) {
    int bits = 6;  // fewer bits would shuffle small counts badly
    while (bits < 32 && (std::uint64_t{1} << bits) < count) ++bits;
    low_bits_ = bits / 2;
    low_mask_ = (1u << low_bits_) - 1;
    high_mask_ = (1u << (bits - low_bits_)) - 1;
    for (std::uint32_t block = 0; block < rounds / 4; ++block) {
      const Words4 words =
          RandomKey{.seed = seed, .epoch = epoch, .sample = pass, .operation = operation}.block(block);
      for (std::uint32_t i = 0; i < 4; ++i) keys_[4 * block + i] = words.word[i];
    }
  }

  constexpr std::uint32_t operator()(std::uint32_t position) const {
    do position = permute(position);
    while (position >= count_);
    return position;
  }

  constexpr std::uint32_t count() const { return count_; }

 private:
  static constexpr std::uint32_t rounds = 8;
  static constexpr std::uint32_t operation = 0x53485546;  // differs from those of augmentation

  static constexpr std::uint32_t mix(std::uint32_t value, std::uint32_t key) {
    value = (value ^ key) * 0x9E3779B1u;
    value = (value ^ (value >> 15)) * 0x85EBCA77u;
    return value ^ (value >> 13);
  }

  constexpr std::uint32_t permute(std::uint32_t value) const {
    std::uint32_t low = value & low_mask_, high = value >> low_bits_;
    for (std::uint32_t round = 0; round < rounds; round += 2) {
      high ^= mix(low, keys_[round]) & high_mask_;
      low ^= mix(high, keys_[round + 1]) & low_mask_;
    }
    return high << low_bits_ | low;
  }

  std::uint32_t count_, low_mask_ = 0, high_mask_ = 0;
  int low_bits_ = 0;
  std::uint32_t keys_[rounds] = {};
};

}  // namespace tandem
