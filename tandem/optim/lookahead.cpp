#include "tandem/optim/lookahead.h"

#include <cmath>

#include "tandem/core/check.h"
#include "tandem/device/on_backend.h"
#include "tandem/nn/copy_named.h"
#include "tandem/optim/tensor_group.h"

namespace tandem {
namespace {

constexpr const char* op = "lookahead";

}  // namespace

Lookahead::Lookahead(Module& module, const LookaheadOptions& options) : module_(module), options_(options) {
  check(options.every >= 1, "[lookahead] expected 1 or more steps between updates, got {}", options.every);
  check(options.decay >= 0 && options.decay < 1,
        "[lookahead] expected a decay of 0 or more and less than 1, got {}", options.decay);
  detail::check_averaged(op, module.parameters());
  slow_ = detail::clones(fast());
  detail::check_same(op, slow_, fast());
  const Tensor& first = slow_.front().tensor;
  slow_group_ = std::make_unique<detail::TensorGroup>(slow_, first.dtype(), first.device());
  hyperparameters_ = Tensor::empty({detail::step_hyperparameter_count}, first.dtype(), first.device());
}

Lookahead::~Lookahead() = default;

// Without buffers of other dtypes.
NamedTensors Lookahead::fast() const {
  NamedTensors tensors = module_.parameters();
  const DType dtype = tensors.front().tensor.dtype();
  for (const NamedTensor& buffer : module_.buffers())
    if (buffer.tensor.dtype() == dtype) tensors.push_back(buffer);
  return tensors;
}

void Lookahead::after_step(std::int64_t step, std::int64_t steps) {
  if (step % options_.every == 0) {
    const double position = static_cast<double>(step) / static_cast<double>(steps);
    update(1 - std::pow(options_.decay, static_cast<double>(options_.every)) * std::pow(position, 3));
  }
  if (step == steps) update(0);
}

void Lookahead::update(double f) {
  const NamedTensors current = fast();
  detail::check_same(op, slow_, current);
  const Tensor& first = current.front().tensor;
  const auto is_grouped = [&] {
    if (grouped_.size() != current.size()) return false;
    for (std::size_t i = 0; i < current.size(); ++i)
      if (grouped_[i].tensor.bytes() != current[i].tensor.bytes()) return false;
    return true;
  };
  if (!is_grouped()) {
    fast_group_ = std::make_unique<detail::TensorGroup>(current, first.dtype(), first.device());
    grouped_ = current;
  }
  on_backend(first.device(), op, [&]<Backend B>() {
    detail::write_hyperparameters_kernel<B>({.kind = OptimizerKind::sgd}, first.dtype(), f, 1,
                                            hyperparameters_.bytes(), current_stream(first.device()));
  });
  slow_group_->update(detail::OtherRule::average, current, hyperparameters_);
  fast_group_->update(detail::OtherRule::copy, slow_, hyperparameters_);
}

void Lookahead::restart() {
  load_state(fast());
}

void Lookahead::load_state(const NamedTensors& state) {
  copy_named(op, slow_, state);
}

}  // namespace tandem
