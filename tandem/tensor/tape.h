// The autograd tape: what was computed from what, and how a gradient flows back. Operations add nodes with
// record(); ops/backward.h walks them. No mathematics here.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tandem/tensor/tensor.h"

namespace tandem {

// One gradient per input of the node, undefined where none is wanted.
using Gradients = std::vector<Tensor>;
using BackwardFunction = std::function<Gradients(const Tensor& gradient)>;

struct Node {
  const char* name = "leaf";
  std::uint64_t order = 0;                    // nodes are made after those they depend on
  std::vector<std::shared_ptr<Node>> inputs;  // null where no gradient is wanted
  BackwardFunction backward;                  // empty in a leaf
  Tensor grad;                                // a leaf's collected gradient

  Node();
  ~Node();  // takes long chains apart without recursion
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
};

// True when a result computed from this tensor must be recorded.
bool wants_grad(const Tensor& tensor);

// Makes `output` the result of `inputs`: in backward(), `backward` gets output's gradient and returns the
// inputs'. Call it only when an input wants a gradient, and let the function capture detached tensors.
void record(Tensor& output, const char* name, std::span<const Tensor* const> inputs,
            BackwardFunction backward);
inline void record(Tensor& output, const char* name, std::initializer_list<const Tensor*> inputs,
                   BackwardFunction backward) {
  record(output, name, std::span(inputs.begin(), inputs.size()), std::move(backward));
}

// While it lives, this thread records nothing.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool previous_;
};

}  // namespace tandem
