// GradientExchange: sums the gradients of all ranks while the backward pass goes on.
//
// Parameters are put into buckets of a few megabytes in the reverse order of their registration, which is
// about the order in which their gradients are complete. A full bucket is summed by the group while the rest
// of the gradients are computed, unless sums are work for the CPUs that compute them (local ranks). Buckets
// do not affect the bits: every element is summed by itself. On a GPU everything but exchanges through the
// CPU is ordered on streams and can be captured.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tandem/core/shard_tree.h"
#include "tandem/tensor/named_tensor.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/engines/bucket_sums.h"

namespace tandem {

class GradientExchange {
 public:
  // `own`: the shards of this rank. The parameters are f32.
  GradientExchange(std::unique_ptr<BucketSums> bucket_sums, const NamedTensors& parameters,
                   std::int64_t shards, IndexRange own);

  // The gradient of a leaf is complete: one sum per node of tree_cover(shards, own).
  void add(const Node& leaf);
  // Waits for the sums, on a GPU on the current stream, and gives them to the parameters. A parameter that
  // received no gradient, on any rank, has none afterwards.
  void finish();

  // Time the host has spent waiting in finish() so far: the part of the exchange that was not hidden.
  double waited_ms() const { return waited_ms_; }

 private:
  struct Bucket {
    std::vector<Tensor> sums;  // one flat tensor per node; the first one also receives the result
    std::size_t missing = 0;   // parameters without a gradient in this step so far
    std::size_t size = 0;      // parameters
  };
  struct Entry {
    Tensor parameter;
    std::size_t bucket = 0;
    std::int64_t begin = 0;  // in the bucket
    bool arrived = false;
  };

  void start_full_buckets();

  std::unique_ptr<BucketSums> bucket_sums_;
  std::vector<Bucket> buckets_;
  std::vector<Entry> entries_;
  std::unordered_map<const Node*, std::size_t> entry_of_;
  std::size_t started_ = 0;  // buckets, always in the same order
  double waited_ms_ = 0;
};

}  // namespace tandem
