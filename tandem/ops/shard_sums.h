// Sums over the rows of a batch by shard (shard_scope.h): stacks with one sum per own shard, and their sums
// along the tree.
#pragma once

#include <span>
#include <vector>

#include "tandem/ops/shard_scope.h"

namespace tandem {

// sums[i] is the sum of node nodes[i] of the tree over `shards`, and the nodes cover `range` from left to
// right. Returns the sums of the nodes of tree_cover(shards, range): in the shape of the operands for one
// node, stacked along a new axis 0 for several. Floating dtypes, contiguous operands.
Tensor sum_tree(std::int64_t shards, IndexRange range, const std::vector<IndexRange>& nodes,
                std::span<const Tensor> sums);

namespace detail {

// `shape` with `count` entries along a new axis 0.
Shape stacked(std::int64_t count, const Shape& shape);

// Whether `gradient`, of a tensor of `shape`, is a stack.
bool is_stack(const ShardPart& part, const Tensor& gradient, const Shape& shape);

// The stack of the sums that sum(to, range) writes for each own shard, where `range` are the shard's elements
// in axis 0 of a tensor with `size` of them. A shard without rows gets zeros.
using SumShard = std::function<void(const Tensor& to, IndexRange range)>;
struct StackOptions {
  const char* op;
  std::int64_t size;
  DType dtype;
  Device device;
};
Tensor stack_shards(const ShardPart& part, const Shape& shape, const StackOptions& options,
                    const SumShard& sum);

// The libraries on a GPU choose kernels by the alignment and the strides of operands as well, so bits could
// depend on where a shard begins in this part. They get shards as they would get new tensors.

// Elements `range` of axis 0: a copy if, on a GPU, they are not contiguous or not aligned as a new tensor is.
Tensor aligned_slice(const Tensor& x, IndexRange range);

// Calls write(tensor) with the contiguous tensor `to`, or with a new one that is then copied to it.
void write_aligned(const Tensor& to, const std::function<void(const Tensor&)>& write);

// sum_to(gradient, shape), stacked under a scope if it sums over rows: the gradient of an operand that was
// broadcast.
Tensor broadcast_gradient(const Tensor& gradient, const Shape& shape);

}  // namespace detail
}  // namespace tandem
