// The autograd tape: a graph of the operations that produced a tensor. Operations add nodes with record();
// backward() in ops/backward.h traverses them.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/tensor/tensor.h"

namespace tandem {

/// One gradient per input of an operation. An undefined tensor where no gradient is needed.
using Gradients = std::vector<Tensor>;

/// Computes the gradients of the inputs from the gradient of the output.
using BackwardFunction = std::function<Gradients(const Tensor& gradient)>;

/// The same, where the gradient of the output is the sum of two terms.
using TermsFunction = std::function<Gradients(const Tensor& first, const Tensor& second)>;

/// One operation on the tape, or a leaf.
struct Node {
  const char* name = "leaf";
  std::uint64_t order = 0;                    ///< increases with creation, so it is a topological order
  std::vector<std::shared_ptr<Node>> inputs;  ///< null where no gradient is needed
  BackwardFunction backward;                  ///< empty in a leaf
  TermsFunction backward_of_terms;            ///< often empty
  Tensor grad;                                ///< the accumulated gradient of a leaf
  bool requires_grad = true;                  ///< false in a frozen leaf; shared by all handles of the leaf
  bool replaced = false;                      ///< the leaf was a parameter that its module has replaced
  Shape shape;                                ///< of the result or the leaf

  Node();
  ~Node();  ///< destroys long chains without recursion
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
};

/// True when an operation on this tensor must be recorded: it requires a gradient and there is no NoGrad.
bool wants_grad(const Tensor& tensor);

/// Records `output` as the result of an operation on `inputs`. backward() calls the function with the
/// gradient of `output`; it returns those of the inputs. Call record() only when wants_grad() holds for an
/// input. The function must capture detached tensors only, otherwise the tape would keep itself alive.
void record(Tensor& output, const char* name, std::span<const Tensor* const> inputs,
            BackwardFunction backward);
/// The same for a list of inputs: record(y, "add", {&a, &b}, f).
inline void record(Tensor& output, const char* name, std::initializer_list<const Tensor*> inputs,
                   BackwardFunction backward) {
  record(output, name, std::span(inputs.begin(), inputs.size()), std::move(backward));
}

/// For operations that add two terms of their gradient on the way: backward() then calls this function in
/// place of the recorded one wherever the gradient of `output` has more than one term. Call it after
/// record().
void accept_terms(const Tensor& output, TermsFunction backward);

/// A recorded operation with everything needed to repeat it elsewhere.
struct TracedOp {
  const char* name = "";
  std::vector<Tensor> inputs;  ///< an undefined tensor where an optional input is absent
  Tensor output;
  std::map<std::string, Dims> sizes = {};      ///< integer options: strides, axes
  std::map<std::string, double> numbers = {};  ///< other options
  std::map<std::string, Tensor> tensors = {};  ///< inputs without a gradient: running statistics
};

/// While it exists, record() of this thread also lists the operations, in order: an exporter makes the graph
/// of another program from them. Only the innermost one is filled.
class Trace {
 public:
  Trace();
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  const std::vector<TracedOp>& ops() const { return ops_; }

 private:
  friend void record(Tensor& output, const char* name, std::span<const Tensor* const> inputs,
                     BackwardFunction backward);
  friend void trace_option(const char* name, const Dims& value);
  friend void trace_option(const char* name, double value);
  friend void trace_option(const char* name, const Tensor& value);

  std::vector<TracedOp> ops_;
  Trace* previous_;
};

/// Adds an option to the operation that was recorded last, if this thread has a Trace. Operations whose
/// result does not follow from their inputs and the shape of the output call it after record().
void trace_option(const char* name, const Dims& value);
void trace_option(const char* name, double value);
void trace_option(const char* name, const Tensor& value);

/// While it exists, operations of this thread are not recorded. Scopes nest.
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
