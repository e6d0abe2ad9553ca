// BucketSums: sums flat buckets of gradients over all ranks, along the tree over the shards
// (core/shard_tree.h): by the group in the CPU's memory, or by NCCL between GPUs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/dist/group.h"
#include "tandem/dist/nccl_group.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

class BucketSums {
 public:
  virtual ~BucketSums() = default;

  // The elements of a bucket are a multiple of this, and at most those reserved.
  virtual std::int64_t granularity() const { return 1; }
  virtual void reserve(std::int64_t /*elements*/) {}

  // Whether sums make progress while the caller computes. If not, starting them early gains nothing.
  virtual bool in_background() const { return true; }

  // Starts to sum a bucket: one tensor per node of tree_cover(shards, own), in f32, of which the first
  // receives the result. All ranks start the same buckets in the same order. The tensors are ready when what
  // is on the current stream is done, and must live until finish().
  virtual void start(const std::vector<Tensor>& sums) = 0;
  // On the CPU, waits for the results; on a GPU, the current stream does.
  virtual void finish() = 0;

 protected:
  BucketSums() = default;
};

// Through the CPU. Buckets on a GPU are copied there and back, and the host waits for them, so nothing can be
// captured.
std::unique_ptr<BucketSums> cpu_bucket_sums(Group& group, std::int64_t shards, Device device);

// Every rank receives its part of a bucket from all others, adds along the tree, and gives the sums to all:
// the same bytes on the network as a ring, and the same bits for any number of ranks. On a stream of its own.
std::unique_ptr<BucketSums> nccl_bucket_sums(NcclGroup& group, std::int64_t shards);

}  // namespace tandem
