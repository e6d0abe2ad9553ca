// The part of a batch that this thread computes when batches are cut into shards (core/shard_tree.h).
//
// Operations process all local rows at once; a tensor of the batch has its rows in axis 0. Only sums over the
// rows, which the gradients of parameters are, are computed for each shard and then added along the tree. So
// the bits of a gradient depend on the number of shards and not on how many ranks share them. On a GPU
// products and convolutions are computed for each shard too (vendor_part()).
//
// Inside the tape, such a gradient is the stack of the sums of this part's shards, (shards, …). When a leaf
// has received all of them, backward() adds them up to the nodes of tree_cover(shards, own): grad() of the
// leaf has its own shape for one node, as when this part has all shards, and a leading axis for several.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tandem/core/shard_tree.h"
#include "tandem/ops/shard_norm.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// Exchanges small values of all shards, on the current stream of their device: `mine` has one entry per own
// shard in axis 0, `all` gets one per shard of the batch. All ranks call it in the same order.
using GatherShards = std::function<void(const Tensor& mine, Tensor& all)>;

struct ShardPart {
  std::int64_t shards = 1;  // of the batch
  IndexRange own = {0, 1};  // the shards of this part, at least one
  std::int64_t rows = 0;    // of the whole batch; shards may be empty
  ShardNorm norm = ShardNorm::batch;
  GatherShards gather = {};  // may be empty if this part has all shards
};

// While it exists, operations of this thread compute `part` of a batch: losses are means over the rows of the
// whole batch, random masks follow the number of the row in the batch, and batch norms use the statistics of
// the whole batch. backward() must run while the scope of the forward pass exists. A batch of one shard is
// computed as without a scope. Throws Error unless 0 ≤ own.begin < own.end ≤ shards and rows ≥ 0.
class ShardScope {
 public:
  explicit ShardScope(ShardPart part);
  ~ShardScope();
  ShardScope(const ShardScope&) = delete;
  ShardScope& operator=(const ShardScope&) = delete;

 private:
  ShardPart part_;
  const ShardPart* previous_;
};

namespace detail {

// The part of the innermost scope. Null without one and for a batch of one shard.
const ShardPart* shard_part();
// The same for products and convolutions, whose rows do not depend on other rows on the CPU only: null there.
// On a GPU the libraries choose kernels by shape, so they are called for one shard after the other.
const ShardPart* vendor_part(Device device);

// While it exists, operations of this thread compute as without a scope.
class WithoutShards {
 public:
  WithoutShards();
  ~WithoutShards();
  WithoutShards(const WithoutShards&) = delete;
  WithoutShards& operator=(const WithoutShards&) = delete;

 private:
  const ShardPart* previous_;
};

// The rows of the batch that this part has.
inline IndexRange local_rows(const ShardPart& part) {
  return rows_of_shards(part.rows, part.shards, part.own);
}

// The elements of axis 0 of a local tensor that belong to each own shard. The axis may have several elements
// for each row; Error, naming `op`, unless its size is a multiple of the local rows.
std::vector<IndexRange> shard_ranges(const ShardPart& part, std::int64_t size, const char* op);

// The size that axis 0 of a local tensor has in the whole batch; `size` itself without a part.
std::int64_t batch_size_of(const ShardPart* part, std::int64_t size, const char* op);

// Fills `all` with the values of all shards of the batch.
Tensor gather_shards(const ShardPart& part, const Tensor& mine, const char* op);

// Error unless the current part is that of the forward pass.
void check_scope(const ShardPart* of_forward, const char* op);

}  // namespace detail
}  // namespace tandem
