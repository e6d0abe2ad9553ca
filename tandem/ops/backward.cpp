#include "tandem/ops/backward.h"

#include <map>
#include <utility>

#include "tandem/core/check.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/fill.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

void accumulate(Tensor& into, const Tensor& gradient) {
  into = into.defined() ? add(into, gradient) : gradient;
}

}  // namespace

void Tensor::backward() const {
  tandem::backward(*this);
}

void backward(const Tensor& loss) {
  check(loss.defined(), "[backward] expected a tensor, got an undefined one");
  check(loss.numel() == 1, "[backward] expected a loss of one element, got shape {}",
        loss.shape().to_string());
  backward(loss, ones(loss.shape(), loss.dtype(), loss.device()));
}

void backward(const Tensor& result, const Tensor& gradient) {
  check(result.requires_grad(),
        "[backward] expected a result that depends on a tensor with requires_grad, got one that does not");
  check(gradient.shape() == result.shape(), "[backward] expected a gradient of shape {}, got {}",
        result.shape().to_string(), gradient.shape().to_string());
  const NoGrad no_grad;
  // Nodes are numbered in creation order, which is topological, so the newest pending node has all its
  // gradients.
  std::map<std::uint64_t, std::pair<std::shared_ptr<Node>, Tensor>> pending;
  pending[result.node()->order] = {result.node(), gradient.detach()};
  while (!pending.empty()) {
    const auto [node, node_gradient] = std::move(pending.extract(std::prev(pending.end())).mapped());
    if (node->inputs.empty()) {
      if (node->requires_grad) accumulate(node->grad, node_gradient);  // it may have been frozen since
      continue;
    }
    check(static_cast<bool>(node->backward),
          "[backward] expected a tape that was not used before, got one that an earlier backward() freed (at "
          "'{}')",
          node->name);
    const Gradients gradients = std::exchange(node->backward, nullptr)(node_gradient);
    expect(gradients.size() == node->inputs.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const auto& input = node->inputs[i];
      if (!input || !gradients[i].defined()) continue;
      auto& [target, sum] = pending[input->order];
      target = input;
      accumulate(sum, gradients[i]);
    }
  }
}

}  // namespace tandem
