#include "tandem/train/engines/accumulation.h"

#include <utility>

#include "tandem/core/check.h"
#include "tandem/ops/shard_sums.h"
#include "tandem/tensor/copy.h"

namespace tandem {
namespace {

// The sums of the nodes that cover some shards, as backward() gives them.
void append_sums(std::vector<Tensor>& to, const Tensor& sums, std::size_t nodes) {
  if (nodes == 1) return to.push_back(sums);
  for (std::size_t i = 0; i < nodes; ++i) to.push_back(sums[static_cast<std::int64_t>(i)]);
}

}  // namespace

Accumulation::Accumulation(const Module& model, std::int64_t shards, IndexRange own, std::int64_t passes,
                           GatherShards gather)
    : shards_(shards), passes_(passes), own_(own), gather_(std::move(gather)) {
  check(passes >= 1 && passes <= own.count(), "[train] expected 1 to {} passes, one per shard, got {}",
        own.count(), passes);
  for (const auto& [name, parameter] : model.parameters()) leaves_[parameter.node().get()] = {parameter, {}};
  for (const auto& [name, buffer] : model.buffers()) buffers_.push_back({buffer, buffer.clone()});
}

IndexRange Accumulation::shards_of(std::int64_t pass) const {
  const IndexRange part = part_of(own_.count(), passes_, pass);
  return {own_.begin + part.begin, own_.begin + part.end};
}

ShardPart Accumulation::begin_pass(std::int64_t pass, std::int64_t rows, ShardNorm norm) {
  pass_ = pass;
  next_moments_ = 0;
  if (pass == 0) moments_.clear();
  for (const auto& [value, at_start] : buffers_)
    pass == 0 ? copy_into(at_start, value) : copy_into(value, at_start);
  return {.shards = shards_,
          .own = shards_of(pass),
          .rows = rows,
          .norm = norm,
          .gather = [this, norm](const Tensor& mine, Tensor& all) {
            check(norm == ShardNorm::shard,
                  "[train] expected batch norms over shards with {} passes per batch, got batch norms over "
                  "the whole batch, whose images are not there at the same time",
                  passes_);
            gather_moments(mine, all);
          }};
}

void Accumulation::gather_moments(const Tensor& mine, Tensor& all) {
  if (pass_ == 0) {
    Dims sizes = mine.shape();
    sizes[0] = own_.count();
    moments_.push_back(Tensor::empty(Shape(sizes), mine.dtype(), mine.device()));
  }
  expect(next_moments_ < moments_.size());
  const Tensor& own_moments = moments_[next_moments_++];
  const IndexRange shards = shards_of(pass_);
  copy_into(own_moments.slice(0, shards.begin - own_.begin, shards.end - own_.begin), mine);
  if (pass_ + 1 < passes_)
    copy_into(all.slice(0, shards.begin, shards.end), mine);  // others affect running statistics only
  else if (own_.count() == shards_)
    copy_into(all, own_moments);
  else
    gather_(own_moments, all);
}

bool Accumulation::add(const Node& leaf) {
  const auto found = leaves_.find(&leaf);
  if (found == leaves_.end()) return false;  // not one of the model's
  auto& [parameter, sums] = found->second;
  const IndexRange shards = shards_of(pass_), before{own_.begin, shards.begin}, all{own_.begin, shards.end};
  std::vector<IndexRange> nodes = tree_cover(shards_, before);
  std::vector<Tensor> of_nodes;
  if (pass_ > 0) append_sums(of_nodes, sums, nodes.size());
  const std::vector<IndexRange> added = tree_cover(shards_, shards);
  append_sums(of_nodes, leaf.grad, added.size());
  nodes.insert(nodes.end(), added.begin(), added.end());
  sums = sum_tree(shards_, all, nodes, of_nodes);
  parameter.set_grad(Tensor());
  if (pass_ + 1 < passes_) return false;
  parameter.set_grad(std::exchange(sums, Tensor()));
  return true;
}

}  // namespace tandem
