// Accumulation: computes the shards of this rank in several passes, one after the other, which needs less
// memory for activations. The gradients of the passes are added along the tree over the shards
// (core/shard_tree.h), so the bits do not depend on the number of passes.
//
// All passes of a batch begin with the same buffers of the model (running statistics, the counters of
// dropout); the last one changes them, when the moments of all shards are known.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tandem/nn/module.h"
#include "tandem/ops/shard_scope.h"
#include "tandem/tensor/named_tensor.h"
#include "tandem/tensor/tape.h"

namespace tandem {

class Accumulation {
 public:
  // `gather` exchanges values with other ranks; empty if this rank has all shards. Error unless every pass
  // has at least one of the `own` shards.
  Accumulation(const Module& model, std::int64_t shards, IndexRange own, std::int64_t passes,
               GatherShards gather);

  std::int64_t passes() const { return passes_; }
  // What a pass computes of a batch of `rows` rows. Passes begin in order, each once per batch.
  ShardPart begin_pass(std::int64_t pass, std::int64_t rows, ShardNorm norm);
  // The gradient of a leaf is complete in the current pass. True in the last pass: then grad() is that of
  // all shards of this rank; before, there is none.
  bool add(const Node& leaf);

 private:
  IndexRange shards_of(std::int64_t pass) const;
  void gather_moments(const Tensor& mine, Tensor& all);

  const std::int64_t shards_, passes_;
  const IndexRange own_;
  const GatherShards gather_;
  std::int64_t pass_ = 0;
  struct Leaf {
    Tensor parameter;
    Tensor sums;  // of the passes so far: one per node of tree_cover()
  };
  std::unordered_map<const Node*, Leaf> leaves_;
  struct Buffer {
    Tensor value, at_start;  // of the batch
  };
  std::vector<Buffer> buffers_;
  // Of each batch norm in the order of the forward pass: the moments of the shards of this rank.
  std::vector<Tensor> moments_;
  std::size_t next_moments_ = 0;
};

}  // namespace tandem
