#include "tandem/train/engines/rank_exchange.h"

#include <cstring>
#include <span>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/ops/finite.h"
#include "tandem/tensor/copy.h"
#include "tandem/train/timed_group.h"

namespace tandem {

namespace {

std::int64_t most_shards(std::int64_t shards, int ranks) {
  return (shards + ranks - 1) / ranks;  // of a rank
}

}  // namespace

void FirstNotFinite::add(const Tensor& values) {
  ++exchange_;
  if (!all_finite({&values, 1})) first_ = std::min(first_, step_ * step_size + exchange_);
}

GatherShards gather_shards_of(Group& group, std::int64_t shards, FirstNotFinite& record) {
  const int ranks = group.place().size;
  const auto most = static_cast<std::size_t>(most_shards(shards, ranks));
  return [&group, shards, ranks, most, &record](const Tensor& mine, Tensor& all) {
    expect(mine.is_contiguous() && all.is_contiguous());
    const Tensor own_values = mine.cpu();
    record.add(own_values);
    const Tensor all_values = all.device().is_cuda() ? Tensor::empty(all.shape(), all.dtype()) : all;
    const std::size_t entry = static_cast<std::size_t>(mine.numel() / mine.size(0)) * size_of(mine.dtype());
    std::vector<std::byte> padded(most * entry), gathered(padded.size() * static_cast<std::size_t>(ranks));
    std::memcpy(padded.data(), own_values.bytes(), static_cast<std::size_t>(mine.size(0)) * entry);
    const ExchangeName name("gather batch norms");
    group.all_gather(padded, gathered);
    for (int rank = 0; rank < ranks; ++rank) {
      const IndexRange own = part_of(shards, ranks, rank);
      std::memcpy(all_values.bytes() + static_cast<std::size_t>(own.begin) * entry,
                  gathered.data() + static_cast<std::size_t>(rank) * padded.size(),
                  static_cast<std::size_t>(own.count()) * entry);
    }
    if (all.device().is_cuda()) copy_into(all, all_values.to(all.device()));
  };
}

GatherShards gather_shards_of(NcclGroup& group, std::int64_t shards) {
  const int ranks = group.place().size;
  const std::int64_t most = most_shards(shards, ranks);
  return [&group, shards, ranks, most](const Tensor& mine, Tensor& all) {
    expect(mine.is_contiguous() && all.is_contiguous());
    const StreamView stream = current_stream(mine.device());
    const auto gather = [&](const Tensor& from, const Tensor& to) {
      group.all_gather(NcclGroup::Lane::values, from, to, stream);
    };
    if (shards % ranks == 0) return gather(mine, all);
    // NCCL gathers the same number of values from all: entries that a rank does not have are not read.
    Dims sizes = mine.shape();
    sizes[0] = most;
    const Tensor padded = Tensor::empty(Shape(sizes), mine.dtype(), mine.device());
    sizes[0] = most * ranks;
    const Tensor gathered = Tensor::empty(Shape(sizes), mine.dtype(), mine.device());
    copy_into(padded.slice(0, 0, mine.size(0)), mine);
    gather(padded, gathered);
    for (int rank = 0; rank < ranks; ++rank) {
      const IndexRange own = part_of(shards, ranks, rank);
      copy_into(all.slice(0, own.begin, own.end), gathered.slice(0, rank * most, rank * most + own.count()));
    }
  };
}

StepSums sum_over_ranks(Group& group, const StepSums& mine) {
  std::vector<StepSums> all(group.places().size());
  const ExchangeName name("sum losses");
  group.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  StepSums total;
  for (const StepSums& one : all) total += one;
  return total;
}

}  // namespace tandem
