#include "tandem/train/engines/gradient_exchange.h"

#include <algorithm>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/tensor/copy.h"

namespace tandem {
namespace {

// The first bucket is small, so that the exchange starts early.
constexpr std::int64_t first_bucket_floats = 1 << 18, bucket_floats = 1 << 20;
// Gradients begin at multiples of 128 bytes, for vector instructions.
constexpr std::int64_t alignment_floats = 32;

std::int64_t round_up(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

}  // namespace

GradientExchange::GradientExchange(std::unique_ptr<BucketSums> bucket_sums, const NamedTensors& parameters,
                                   std::int64_t shards, IndexRange own)
    : bucket_sums_(std::move(bucket_sums)) {
  std::vector<std::int64_t> floats;
  for (auto named = parameters.rbegin(); named != parameters.rend(); ++named) {
    const Tensor& parameter = named->tensor;
    check(parameter.dtype() == DType::f32,
          "[train] expected parameters in f32 with several ranks, got {} in {}", named->name,
          name_of(parameter.dtype()));
    const std::int64_t wanted = buckets_.size() <= 1 ? first_bucket_floats : bucket_floats;
    if (buckets_.empty() || floats.back() + parameter.numel() > wanted) {
      buckets_.emplace_back();
      floats.push_back(0);
    }
    entry_of_[parameter.node().get()] = entries_.size();
    entries_.push_back({.parameter = parameter, .bucket = buckets_.size() - 1, .begin = floats.back()});
    floats.back() += round_up(parameter.numel(), alignment_floats);
    ++buckets_.back().size;
  }
  const std::size_t nodes = tree_cover(shards, own).size();
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const std::int64_t size = round_up(floats[i], bucket_sums_->granularity());
    largest = std::max(largest, size);
    buckets_[i].missing = buckets_[i].size;
    for (std::size_t node = 0; node < nodes; ++node) {
      buckets_[i].sums.push_back(Tensor::empty({size}, DType::f32, parameters.front().tensor.device()));
      clear(buckets_[i].sums.back());
    }
  }
  bucket_sums_->reserve(largest);
}

void GradientExchange::add(const Node& leaf) {
  const auto found = entry_of_.find(&leaf);
  if (found == entry_of_.end()) return;  // not one of the optimizer's
  Entry& entry = entries_[found->second];
  Bucket& bucket = buckets_[entry.bucket];
  expect(!entry.arrived);
  const Tensor& gradient = leaf.grad;
  for (std::size_t node = 0; node < bucket.sums.size(); ++node) {
    const Tensor of_node = bucket.sums.size() == 1 ? gradient : gradient[static_cast<std::int64_t>(node)];
    const std::int64_t end = entry.begin + entry.parameter.numel();
    copy_into(bucket.sums[node].slice(0, entry.begin, end), of_node.reshape({entry.parameter.numel()}));
  }
  entry.arrived = true;
  --bucket.missing;
  entry.parameter.set_grad(Tensor());
  if (bucket_sums_->in_background()) start_full_buckets();
}

void GradientExchange::start_full_buckets() {
  for (; started_ < buckets_.size() && buckets_[started_].missing == 0; ++started_)
    bucket_sums_->start(buckets_[started_].sums);
}

void GradientExchange::finish() {
  for (Entry& entry : entries_) {
    if (entry.arrived) continue;
    Bucket& bucket = buckets_[entry.bucket];
    for (const Tensor& sum : bucket.sums)
      clear(sum.slice(0, entry.begin, entry.begin + entry.parameter.numel()));
    --bucket.missing;
  }
  start_full_buckets();
  const Stopwatch watch;
  bucket_sums_->finish();
  waited_ms_ += watch.elapsed_ms();
  for (Entry& entry : entries_) {
    if (!std::exchange(entry.arrived, false)) continue;
    const Tensor& sum = buckets_[entry.bucket].sums.front();
    entry.parameter.set_grad(
        sum.slice(0, entry.begin, entry.begin + entry.parameter.numel()).reshape(entry.parameter.shape()));
  }
  started_ = 0;
  for (Bucket& bucket : buckets_) bucket.missing = bucket.size;
}

}  // namespace tandem
