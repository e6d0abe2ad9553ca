#include "tandem/ops/shard_scope.h"

#include <utility>

#include "tandem/core/check.h"

namespace tandem {
namespace {

thread_local const ShardPart* current_part = nullptr;

}  // namespace

ShardScope::ShardScope(ShardPart part) : part_(std::move(part)), previous_(current_part) {
  const auto& [shards, own, rows, norm, gather] = part_;
  check(shards >= 1 && own.begin >= 0 && own.begin < own.end && own.end <= shards,
        "[shard scope] expected some of {} shards, got shards {} to {}", shards, own.begin, own.end);
  check(rows >= 0, "[shard scope] expected 0 rows or more, got {}", rows);
  current_part = shards > 1 ? &part_ : nullptr;
}

ShardScope::~ShardScope() {
  current_part = previous_;
}

namespace detail {

const ShardPart* shard_part() {
  return current_part;
}

const ShardPart* vendor_part(Device device) {
  return device.is_cuda() ? current_part : nullptr;
}

WithoutShards::WithoutShards() : previous_(std::exchange(current_part, nullptr)) {}

WithoutShards::~WithoutShards() {
  current_part = previous_;
}

namespace {

// Elements of axis 0 per row.
std::int64_t elements_per_row(const ShardPart& part, std::int64_t size, const char* op) {
  const std::int64_t rows = local_rows(part).count();
  check(rows > 0 ? size % rows == 0 : size == 0,
        "[{}] expected the {} rows of this part of the batch in axis 0, got {}", op, rows, size);
  return rows > 0 ? size / rows : 1;
}

}  // namespace

std::vector<IndexRange> shard_ranges(const ShardPart& part, std::int64_t size, const char* op) {
  const std::int64_t scale = elements_per_row(part, size, op), first = local_rows(part).begin;
  std::vector<IndexRange> ranges;
  for (const IndexRange shard : single_shards(part.own)) {
    const IndexRange rows = rows_of_shards(part.rows, part.shards, shard);
    ranges.push_back({(rows.begin - first) * scale, (rows.end - first) * scale});
  }
  return ranges;
}

std::int64_t batch_size_of(const ShardPart* part, std::int64_t size, const char* op) {
  return part ? elements_per_row(*part, size, op) * part->rows : size;
}

Tensor gather_shards(const ShardPart& part, const Tensor& mine, const char* op) {
  if (part.own.count() == part.shards) return mine;
  check(static_cast<bool>(part.gather),
        "[{}] expected ShardPart::gather where other ranks have shards, got an empty function", op);
  Dims sizes = mine.shape();
  sizes[0] = part.shards;
  Tensor all = Tensor::empty(Shape(sizes), mine.dtype(), mine.device());
  part.gather(mine, all);
  return all;
}

void check_scope(const ShardPart* of_forward, const char* op) {
  check(of_forward == current_part, "[{}] expected backward() inside the ShardScope of the forward pass", op);
}

}  // namespace detail
}  // namespace tandem
