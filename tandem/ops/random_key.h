// The key of random numbers: the seed and the stream that the caller gave, or the next default stream.
#pragma once

#include <cstdint>
#include <optional>

namespace tandem::detail {

struct RandomKey {
  std::uint64_t seed;
  std::uint64_t stream;
};

// With neither a seed nor a stream: the seed of manual_seed() and a stream that no earlier call got.
// Otherwise the given ones, 0 for the missing one. Thread-safe.
RandomKey random_key(std::optional<std::uint64_t> seed, std::optional<std::uint64_t> stream);

}  // namespace tandem::detail
