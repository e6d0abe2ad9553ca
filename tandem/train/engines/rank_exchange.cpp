#include "tandem/train/engines/rank_exchange.h"

#include <cstring>
#include <span>
#include <vector>

#include "tandem/core/check.h"

namespace tandem {

GatherShards gather_shards_of(Group& group, std::int64_t shards) {
  const int ranks = group.place().size;
  const auto most = static_cast<std::size_t>((shards + ranks - 1) / ranks);  // shards of a rank
  return [&group, shards, ranks, most](const Tensor& mine, Tensor& all) {
    expect(mine.is_contiguous() && all.is_contiguous() && !mine.device().is_cuda());
    const std::size_t entry = static_cast<std::size_t>(mine.numel() / mine.size(0)) * size_of(mine.dtype());
    std::vector<std::byte> padded(most * entry), gathered(padded.size() * static_cast<std::size_t>(ranks));
    std::memcpy(padded.data(), mine.bytes(), static_cast<std::size_t>(mine.size(0)) * entry);
    group.all_gather(padded, gathered);
    for (int rank = 0; rank < ranks; ++rank) {
      const IndexRange own = part_of(shards, ranks, rank);
      std::memcpy(all.bytes() + static_cast<std::size_t>(own.begin) * entry,
                  gathered.data() + static_cast<std::size_t>(rank) * padded.size(),
                  static_cast<std::size_t>(own.count()) * entry);
    }
  };
}

StepSums sum_over_ranks(Group& group, const StepSums& mine) {
  std::vector<StepSums> all(group.places().size());
  group.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  StepSums total;
  for (const StepSums& one : all) total += one;
  return total;
}

}  // namespace tandem
