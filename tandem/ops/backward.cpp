#include "tandem/ops/backward.h"

#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/fill.h"
#include "tandem/ops/shard_sums.h"
#include "tandem/tensor/copy.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

using detail::is_stack;
using LeafFunction = std::function<void(const Node& leaf)>;

void accumulate(Tensor& into, const Tensor& gradient) {
  into = into.defined() ? add(into, gradient) : gradient;
}

// Under a ShardScope, gradients are of two kinds: those of tensors of the batch have the shape of the tensor,
// and those of parameters, and of what is computed from parameters alone, are stacks of sums over the rows of
// a shard.
class ShardedGradients {
 public:
  explicit ShardedGradients(const ShardPart& part) : part_(part) {}

  void accumulate(const Node& node, Tensor& into, const Tensor& gradient) const {
    if (into.defined() && into.shape() != gradient.shape()) {
      into = to_stack(node, into);
      return accumulate(node, into, to_stack(node, gradient));
    }
    tandem::accumulate(into, gradient);
  }

  // The gradients of the inputs of a node. The gradients of a stack are stacks.
  Gradients propagate(const Node& node, const BackwardFunction& backward, const Tensor& gradient) const {
    if (!is_stack(part_, gradient, node.shape)) return backward(gradient);
    const detail::WithoutShards plain;
    std::vector<Gradients> of_shards;
    for (std::int64_t i = 0; i < gradient.size(0); ++i) of_shards.push_back(backward(gradient[i]));
    Gradients stacks;
    for (std::size_t input = 0; input < of_shards.front().size(); ++input)
      stacks.push_back(stack(of_shards, input));
    return stacks;
  }

  // Adds up the gradients of the shards. Not to an earlier gradient: two backward passes would be added node
  // by node, so the bits would depend on the nodes.
  void store(Node& leaf, const Tensor& gradient) const {
    check(!leaf.grad.defined(),
          "[backward] expected leaves without a gradient inside a ShardScope, got one of shape {}",
          leaf.grad.shape().to_string());
    const Tensor sums = to_stack(leaf, gradient).contiguous();
    std::vector<Tensor> of_shards;
    for (std::int64_t i = 0; i < sums.size(0); ++i) of_shards.push_back(sums[i]);
    leaf.grad = sum_tree(part_.shards, part_.own, single_shards(part_.own), of_shards);
  }

 private:
  static Tensor stack(const std::vector<Gradients>& of_shards, std::size_t input) {
    const Tensor& first = of_shards.front()[input];
    if (!first.defined()) return {};
    const auto count = static_cast<std::int64_t>(of_shards.size());
    if (count == 1) return first.reshape(detail::stacked(1, first.shape()));
    Tensor result = Tensor::empty(detail::stacked(count, first.shape()), first.dtype(), first.device());
    for (std::int64_t i = 0; i < count; ++i)
      copy_into(result[i], of_shards[static_cast<std::size_t>(i)][input]);
    return result;
  }

  // A single row is its own sum: an operation that sums over rows may have returned it as it is.
  Tensor to_stack(const Node& node, const Tensor& gradient) const {
    if (is_stack(part_, gradient, node.shape)) return gradient;
    const IndexRange rows = detail::local_rows(part_);
    check(
        rows.count() == 1 && gradient.shape() == node.shape,
        "[backward] expected the gradients of parameters to be sums over the rows of the batch, which has {} "
        "shards, got one of shape {} for the {} of shape {}: an operation or a term of the loss does not "
        "keep the rows apart",
        part_.shards, gradient.shape().to_string(), node.name, node.shape.to_string());
    Tensor result =
        zeros(detail::stacked(part_.own.count(), node.shape), gradient.dtype(), gradient.device());
    const auto shards = single_shards(part_.own);
    for (std::size_t i = 0; i < shards.size(); ++i)
      if (rows_of_shards(part_.rows, part_.shards, shards[i]).count() > 0)
        copy_into(result[static_cast<std::int64_t>(i)], gradient);
    return result;
  }

  const ShardPart& part_;
};

// How many gradients each leaf will receive.
std::unordered_map<const Node*, int> count_leaf_uses(const Node& result) {
  std::unordered_map<const Node*, int> uses;
  std::unordered_set<const Node*> visited{&result};
  std::vector<const Node*> open{&result};
  while (!open.empty()) {
    const Node* const node = open.back();
    open.pop_back();
    for (const auto& input : node->inputs) {
      if (!input) continue;
      if (input->inputs.empty())
        ++uses[input.get()];
      else if (visited.insert(input.get()).second)
        open.push_back(input.get());
    }
  }
  return uses;
}

// Nodes are numbered in creation order, which is topological, so the newest pending node has all its
// gradients.
class Pass {
 public:
  Pass(const Tensor& result, const Tensor& gradient, const LeafFunction& on_leaf) : on_leaf_(on_leaf) {
    if (const ShardPart* const part = detail::shard_part()) sharded_.emplace(*part);
    // A stack is as large as all shards together, so it is added up as soon as it is complete.
    if (sharded_ || on_leaf_) leaf_uses_ = count_leaf_uses(*result.node());
    pending_[result.node()->order] = {result.node(), gradient.detach(), {}};
  }

  void run() {
    while (!pending_.empty()) {
      const Pending next = std::move(pending_.extract(std::prev(pending_.end())).mapped());
      if (next.node->inputs.empty())
        store(*next.node, next.gradient);
      else
        propagate(next);
    }
  }

 private:
  void store(Node& leaf, const Tensor& gradient) const {
    if (!leaf.requires_grad) return;  // it may have been frozen since
    if (sharded_)
      sharded_->store(leaf, gradient);
    else
      accumulate(leaf.grad, gradient);
    if (on_leaf_) on_leaf_(leaf);
  }

  struct Pending {
    std::shared_ptr<Node> node;
    Tensor gradient;
    Tensor term;  // not added yet; only where the node accepts terms
  };

  // Frees what the node has saved.
  Gradients gradients_of(Node& node, const Pending& pending) const {
    const BackwardFunction backward = std::exchange(node.backward, nullptr);
    const TermsFunction backward_of_terms = std::exchange(node.backward_of_terms, nullptr);
    if (pending.term.defined()) return backward_of_terms(pending.gradient, pending.term);
    return sharded_ ? sharded_->propagate(node, backward, pending.gradient) : backward(pending.gradient);
  }

  void propagate(const Pending& pending) {
    Node& node = *pending.node;
    check(static_cast<bool>(node.backward),
          "[backward] expected a tape that was not used before, got one that an earlier backward() freed (at "
          "'{}')",
          node.name);
    const Gradients gradients = gradients_of(node, pending);
    expect(gradients.size() == node.inputs.size());
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (node.inputs[i]) give(node.inputs[i], gradients[i]);
  }

  void give(const std::shared_ptr<Node>& input, const Tensor& gradient) {
    if (gradient.defined()) {
      auto& [target, sum, term] = pending_[input->order];
      target = input;
      if (sharded_)
        sharded_->accumulate(*input, sum, gradient);
      else if (sum.defined() && input->backward_of_terms) {
        if (term.defined()) accumulate(sum, term);
        term = gradient;
      } else
        accumulate(sum, gradient);
    }
    if (const auto uses = leaf_uses_.find(input.get()); uses != leaf_uses_.end() && --uses->second == 0)
      if (const auto complete = pending_.extract(input->order)) store(*input, complete.mapped().gradient);
  }

  std::map<std::uint64_t, Pending> pending_;
  const LeafFunction& on_leaf_;
  std::optional<ShardedGradients> sharded_;
  std::unordered_map<const Node*, int> leaf_uses_;  // empty: leaves are stored at the end
};

}  // namespace

void Tensor::backward() const {
  tandem::backward(*this);
}

namespace {

void run_pass(const Tensor& result, const Tensor& gradient, const LeafFunction& on_leaf) {
  check(result.requires_grad(),
        "[backward] expected a result that depends on a tensor with requires_grad, got one that does not");
  check(gradient.shape() == result.shape(), "[backward] expected a gradient of shape {}, got {}",
        result.shape().to_string(), gradient.shape().to_string());
  const NoGrad no_grad;
  Pass(result, gradient, on_leaf).run();
}

}  // namespace

void backward(const Tensor& loss) {
  backward(loss, LeafFunction());
}

void backward(const Tensor& result, const Tensor& gradient) {
  run_pass(result, gradient, {});
}

void backward(const Tensor& loss, const LeafFunction& on_leaf) {
  check(loss.defined(), "[backward] expected a tensor, got an undefined one");
  check(loss.numel() == 1, "[backward] expected a loss of one element, got shape {}",
        loss.shape().to_string());
  run_pass(loss, ones(loss.shape(), loss.dtype(), loss.device()), on_leaf);
}

}  // namespace tandem
