#include "tandem/dist/tree_sum.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tandem/core/check.h"
#include "tandem/core/shard_tree.h"
#include "tandem/core/simd.h"

namespace tandem {
namespace {

constexpr std::int64_t block = 2048;  // elements added at a time: the temporary arrays stay in the L1 cache

void add_arrays(const float* a, const float* b, float* to, std::int64_t count) {
  with_simd([=]<std::size_t bytes>() __attribute__((always_inline)) {
    using Lane = Vector<float, bytes>;
    constexpr auto lanes = static_cast<std::int64_t>(bytes / sizeof(float));
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
      *reinterpret_cast<Lane*>(to + i) =
          *reinterpret_cast<const Lane*>(a + i) + *reinterpret_cast<const Lane*>(b + i);
    for (; i < count; ++i) to[i] = a[i] + b[i];
  });
}

}  // namespace

TreeSum::TreeSum(std::int64_t shards, int ranks) : shards_(shards) {
  check(shards >= 1 && shards <= max_shards, "[group] expected 1 to {} shards, got {}", max_shards, shards);
  check(ranks >= 1 && ranks <= shards,
        "[group] expected at most one rank per shard, got {} ranks for {} shards", ranks, shards);
  std::vector<IndexRange> nodes;
  for (int rank = 0; rank < ranks; ++rank) {
    first_.push_back(static_cast<int>(nodes.size()));
    for (const IndexRange node : tree_cover(shards, part_of(shards, ranks, rank))) nodes.push_back(node);
  }
  first_.push_back(static_cast<int>(nodes.size()));

  // The additions come in postorder, so the temporary arrays in use form a stack.
  const int count = node_count();
  std::vector<int> where(nodes.size());  // the array that holds the sum of a slot
  for (int i = 0; i < count; ++i) where[static_cast<std::size_t>(i)] = i;
  int used = 0;
  for (const TreeAddition one : tree_additions(shards, {0, shards}, nodes)) {
    const int left = where[static_cast<std::size_t>(one.to)];
    const int right = where[static_cast<std::size_t>(one.from)];
    if (left >= count && right >= count) --used;  // the one above is free afterwards
    if (left < count && right < count) ++used;
    temporaries_ = std::max(temporaries_, used);
    const int to = count + used - 1;
    steps_.push_back({to, left, right});
    where[static_cast<std::size_t>(one.to)] = to;
  }
}

int TreeSum::max_count() const {
  int max = 0;
  for (int rank = 0; rank < ranks(); ++rank) max = std::max(max, count(rank));
  return max;
}

void TreeSum::add(std::span<const float* const> arrays, std::span<float> out, float* copy) const {
  expect(static_cast<int>(arrays.size()) == node_count());
  constexpr int max_temporaries = 12;  // at most one per level of the tree
  alignas(64) std::array<std::array<float, block>, max_temporaries> temporary;
  expect(temporaries_ <= max_temporaries);
  const auto size = static_cast<std::int64_t>(out.size());
  for (std::int64_t begin = 0; begin < size; begin += block) {
    const std::int64_t count = std::min(block, size - begin);
    const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
    float* const sum = out.data() + begin;
    const auto array = [&](int index) -> const float* {
      const auto i = static_cast<std::size_t>(index);
      return i < arrays.size() ? arrays[i] + begin : temporary[i - arrays.size()].data();
    };
    for (const Step& step : steps_) {
      float* to =
          &step == &steps_.back() ? sum : temporary[static_cast<std::size_t>(step.to) - arrays.size()].data();
      add_arrays(array(step.left), array(step.right), to, count);
    }
    if (steps_.empty() && sum != array(0)) std::memcpy(sum, array(0), bytes);
    if (copy) std::memcpy(copy + begin, sum, bytes);
  }
}

}  // namespace tandem
