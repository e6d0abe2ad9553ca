#include "tandem/nn/conv_norm.h"

#include "tandem/ops/conv/fold_batch_norm.h"
#include "tandem/ops/conv/prepacked_conv.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

Conv2dLayerOptions without_bias(Conv2dLayerOptions options) {
  options.bias = false;
  return options;
}

}  // namespace

struct ConvNorm::Folded {
  detail::PrepackedConv2d conv;
  DType dtype;
  std::uint64_t conv_revision;
  std::uint64_t norm_revision;
};

ConvNorm::ConvNorm(std::int64_t in, std::int64_t out, const Conv2dLayerOptions& options,
                   const ConvNormOptions& norm)
    : conv_(in, out, without_bias(options)), norm_(out, norm.momentum, norm.epsilon) {}

ConvNorm::~ConvNorm() = default;

const detail::PrepackedConv2d* ConvNorm::folded(const Tensor& x) {
  if (norm_.uses_batch_statistics() || wants_grad(conv_.weight()) || wants_grad(norm_.weight()) ||
      wants_grad(x))
    return nullptr;
  if (!folded_ || folded_->dtype != x.dtype() || folded_->conv_revision != conv_.revision() ||
      folded_->norm_revision != norm_.revision()) {
    const detail::FoldedConv folded = detail::fold_batch_norm(
        conv_.weight(),
        {norm_.weight(), norm_.bias(), norm_.running_mean(), norm_.running_variance(), norm_.epsilon()},
        x.dtype());
    folded_ = std::make_unique<Folded>(
        Folded{detail::prepack_conv2d(folded.weight, folded.bias, conv_.options(), x.dtype()), x.dtype(),
               conv_.revision(), norm_.revision()});
  }
  return &folded_->conv;
}

Tensor ConvNorm::forward(const Tensor& x, FusedActivation activation, const Tensor& residual) {
  const bool needs_norm = residual.defined() && wants_grad(residual);
  const detail::PrepackedConv2d* const conv = needs_norm ? nullptr : folded(x);
  if (!conv) return norm_.forward(conv_.forward(x), residual, activation);
  Tensor y = detail::prepacked_conv2d(*conv, x, residual, activation);
  folded_->conv.settled = true;
  return y;
}

}  // namespace tandem
