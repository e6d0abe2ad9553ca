// Ranges of rows and of shards, how items are divided into parts, and division that rounds up.
#pragma once

#include <cstdint>

namespace tandem {

/// Consecutive rows or shards [begin, end).
struct IndexRange {
  std::int64_t begin = 0, end = 0;

  constexpr std::int64_t count() const { return end - begin; }
  constexpr bool contains(IndexRange inner) const { return begin <= inner.begin && inner.end <= end; }
  friend constexpr bool operator==(IndexRange, IndexRange) = default;
};

namespace detail {

constexpr std::int64_t ceil_div(std::int64_t count, std::int64_t divisor) {
  return (count + divisor - 1) / divisor;
}
constexpr std::int64_t round_up(std::int64_t count, std::int64_t multiple) {
  return ceil_div(count, multiple) * multiple;
}

}  // namespace detail

/// Part `index` of `count` items that are divided into `parts` as evenly as possible. Some parts are empty
/// when there are fewer items than parts.
constexpr IndexRange part_of(std::int64_t count, std::int64_t parts, std::int64_t index) {
  return {index * count / parts, (index + 1) * count / parts};
}

/// The rows of shards [shards.begin, shards.end) of `shard_count`, in a batch of `rows` rows.
constexpr IndexRange rows_of_shards(std::int64_t rows, std::int64_t shard_count, IndexRange shards) {
  return {shards.begin * rows / shard_count, shards.end * rows / shard_count};
}

}  // namespace tandem
