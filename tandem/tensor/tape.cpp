#include "tandem/tensor/tape.h"

#include <atomic>
#include <iterator>
#include <utility>

namespace tandem {
namespace {

thread_local bool is_recording = true;
thread_local Trace* current_trace = nullptr;

std::uint64_t next_order() {
  static std::atomic<std::uint64_t> order{0};
  return order.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Node::Node() : order(next_order()) {}

Node::~Node() {
  auto pending = std::move(inputs);
  while (!pending.empty()) {
    const std::shared_ptr<Node> node = std::move(pending.back());
    pending.pop_back();
    if (!node || node.use_count() > 1) continue;
    std::move(node->inputs.begin(), node->inputs.end(), std::back_inserter(pending));
    node->inputs.clear();
  }
}

bool Tensor::requires_grad() const {
  return node_ && node_->requires_grad;
}

bool wants_grad(const Tensor& tensor) {
  return is_recording && tensor.requires_grad();
}

void record(Tensor& output, const char* name, std::span<const Tensor* const> inputs,
            BackwardFunction backward) {
  auto node = std::make_shared<Node>();
  node->name = name;
  node->shape = output.shape();
  for (const Tensor* input : inputs) node->inputs.push_back(input->requires_grad() ? input->node() : nullptr);
  node->backward = std::move(backward);
  output.set_node(std::move(node));
  if (!current_trace) return;
  TracedOp& op = current_trace->ops_.emplace_back(TracedOp{.name = name, .inputs = {}, .output = output});
  for (const Tensor* input : inputs) op.inputs.push_back(*input);
}

void accept_terms(const Tensor& output, TermsFunction backward) {
  output.node()->backward_of_terms = std::move(backward);
}

Trace::Trace() : previous_(std::exchange(current_trace, this)) {}

Trace::~Trace() {
  current_trace = previous_;
}

void trace_option(const char* name, const Dims& value) {
  if (current_trace && !current_trace->ops_.empty()) current_trace->ops_.back().sizes[name] = value;
}

void trace_option(const char* name, double value) {
  if (current_trace && !current_trace->ops_.empty()) current_trace->ops_.back().numbers[name] = value;
}

void trace_option(const char* name, const Tensor& value) {
  if (current_trace && !current_trace->ops_.empty()) current_trace->ops_.back().tensors[name] = value;
}

NoGrad::NoGrad() : previous_(std::exchange(is_recording, false)) {}

NoGrad::~NoGrad() {
  is_recording = previous_;
}

}  // namespace tandem
