#include "tandem/train/engines/bucket_sums.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "tandem/core/check.h"
#include "tandem/core/shard_tree.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"
#include "tandem/device/pinned.h"
#include "tandem/dist/tree_sum.h"
#include "tandem/ops/shard_sums_kernel.h"

namespace tandem {
namespace {

class CpuBucketSums : public BucketSums {
 public:
  CpuBucketSums(Group& group, std::int64_t shards) : group_(group), shards_(shards) {}

  bool in_background() const override { return group_.sums_in_background(); }
  void start(const std::vector<Tensor>& sums) override {
    started_.push_back(group_.reduce({shards_, sums}, sums.front()));
  }
  void finish() override {
    for (Work& work : started_) work.wait();
    started_.clear();
  }

 private:
  Group& group_;
  const std::int64_t shards_;
  std::vector<Work> started_;
};

std::span<std::byte> bytes_of(const Tensor& tensor) {
  return {tensor.bytes(), static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype())};
}

// A bucket of a GPU in pinned memory.
class StagedBucket {
 public:
  StagedBucket(const std::vector<Tensor>& sums, Device device) : ready_(device) {
    for (const Tensor& sum : sums) {
      copies_.push_back(Tensor::empty(sum.shape(), sum.dtype()));
      pinned_.emplace_back(bytes_of(copies_.back()), device);
    }
  }

  void copy_from(const std::vector<Tensor>& sums, StreamView stream) {
    result_ = sums.front();
    for (std::size_t i = 0; i < sums.size(); ++i) copy(copies_[i], sums[i], stream);
    ready_.record(stream);
  }
  Work reduce(Group& group, std::int64_t shards) {
    ready_.synchronize();
    return group.reduce({shards, copies_}, copies_.front());
  }
  void copy_back(StreamView stream) { copy(result_, copies_.front(), stream); }

 private:
  static void copy(const Tensor& to, const Tensor& from, StreamView stream) {
    expect(to.is_contiguous() && from.is_contiguous() && to.numel() == from.numel());
    on_backend(stream.device, "train",
               [&]<Backend B>() { copy_bytes<B>(to.bytes(), from.bytes(), bytes_of(from).size(), stream); });
  }

  std::vector<Tensor> copies_;
  std::deque<PinnedMemory> pinned_;  // the memory of `copies_`
  Event ready_;
  Tensor result_;
};

class StagedBucketSums : public BucketSums {
 public:
  StagedBucketSums(Group& group, std::int64_t shards, Device device)
      : group_(group), shards_(shards), device_(device) {}

  void start(const std::vector<Tensor>& sums) override {
    if (started_ == buckets_.size()) buckets_.push_back(std::make_unique<StagedBucket>(sums, device_));
    buckets_[started_++]->copy_from(sums, current_stream(device_));
  }
  void finish() override {
    std::vector<Work> works;
    for (std::size_t i = 0; i < started_; ++i) works.push_back(buckets_[i]->reduce(group_, shards_));
    for (std::size_t i = 0; i < started_; ++i) {
      works[i].wait();
      buckets_[i]->copy_back(current_stream(device_));
    }
    started_ = 0;
  }

 private:
  Group& group_;
  const std::int64_t shards_;
  const Device device_;
  std::vector<std::unique_ptr<StagedBucket>> buckets_;  // in the order in which they start
  std::size_t started_ = 0;
};

std::vector<IndexRange> nodes_of_all(std::int64_t shards, int ranks) {
  std::vector<IndexRange> nodes;
  for (int rank = 0; rank < ranks; ++rank)
    for (const IndexRange node : tree_cover(shards, part_of(shards, ranks, rank))) nodes.push_back(node);
  return nodes;
}

class NcclBucketSums : public BucketSums {
 public:
  NcclBucketSums(NcclGroup& group, std::int64_t shards)
      : group_(group),
        rank_(group.place().rank),
        ranks_(group.place().size),
        tree_(shards, ranks_),
        plan_(shards, {0, shards}, nodes_of_all(shards, ranks_)),
        stream_(group.device()),
        ready_(group.device()),
        done_(group.device()) {}

  // Parts of a bucket are aligned as vector loads need it.
  std::int64_t granularity() const override { return ranks_ * std::int64_t{32}; }
  void reserve(std::int64_t elements) override {
    const std::int64_t part = elements / ranks_;
    received_ =
        Tensor::empty({(tree_.node_count() - tree_.count(rank_)) * part}, DType::f32, group_.device());
    sum_ = Tensor::empty({part}, DType::f32, group_.device());
  }

  void start(const std::vector<Tensor>& sums) override {
    ready_.record(current_stream(group_.device()));
    ready_.block_stream(stream_);
    const StreamScope scope(stream_);
    const std::int64_t size = sums.front().numel() / ranks_;
    const std::vector<Tensor> operands = exchange(sums, size);
    const Tensor sum = operands.size() == 1 ? operands.front() : sum_.slice(0, 0, size);
    if (operands.size() > 1)
      on_backend(group_.device(), "train",
                 [&]<Backend B>() { detail::sum_tree_kernel<B>(plan_, operands, sum, stream_); });
    group_.all_gather(NcclGroup::Lane::sums, sum, sums.front(), stream_);
  }

  void finish() override {
    done_.record(stream_);
    done_.block_stream(current_stream(group_.device()));
  }

 private:
  // This rank's part, of `size` elements, of the sums of all nodes.
  std::vector<Tensor> exchange(const std::vector<Tensor>& sums, std::int64_t size) {
    const auto part = [&](const Tensor& tensor, std::int64_t number) {
      return tensor.slice(0, number * size, (number + 1) * size);
    };
    std::vector<Tensor> operands;
    std::vector<NcclGroup::Transfer> sends, receives;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank == rank_) {
        for (const Tensor& sum : sums) operands.push_back(part(sum, rank));
        continue;
      }
      for (const Tensor& sum : sums) sends.push_back({rank, part(sum, rank)});
      for (int node = 0; node < tree_.count(rank); ++node) {
        operands.push_back(part(received_, static_cast<std::int64_t>(receives.size())));
        receives.push_back({rank, operands.back()});
      }
    }
    group_.exchange(NcclGroup::Lane::sums, sends, receives, stream_);
    return operands;
  }

  NcclGroup& group_;
  const int rank_, ranks_;
  const TreeSum tree_;
  const detail::TreePlan plan_;
  Tensor received_, sum_;  // used by one bucket after the other
  Stream stream_;
  Event ready_, done_;
};

}  // namespace

std::unique_ptr<BucketSums> cpu_bucket_sums(Group& group, std::int64_t shards, Device device) {
  if (device.is_cuda()) return std::make_unique<StagedBucketSums>(group, shards, device);
  return std::make_unique<CpuBucketSums>(group, shards);
}

std::unique_ptr<BucketSums> nccl_bucket_sums(NcclGroup& group, std::int64_t shards) {
  return std::make_unique<NcclBucketSums>(group, shards);
}

}  // namespace tandem
