// The seed and the stream of random numbers: those that the caller gave, or the next default stream.
#pragma once

#include <cstdint>
#include <optional>

namespace tandem::detail {

struct RandomStream {
  std::uint64_t seed;
  std::uint64_t stream;
};

// With neither a seed nor a stream: the seed of manual_seed() and a stream that no earlier call got.
// Otherwise the given ones, 0 for the missing one. Thread-safe.
RandomStream random_stream(std::optional<std::uint64_t> seed, std::optional<std::uint64_t> stream);

}  // namespace tandem::detail
