#include "tandem/nn/conv_norm.h"

#include "tandem/ops/fold_norm.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

Conv2dLayerOptions without_bias(Conv2dLayerOptions options) {  // the norm has one
  options.bias = false;
  return options;
}

}  // namespace

ConvNorm::ConvNorm(std::int64_t in, std::int64_t out, Conv2dLayerOptions options)
    : conv_(in, out, without_bias(options)), norm_(out) {}

bool ConvNorm::is_fixed(const Tensor& x, const Tensor& residual) const {
  return !norm_.uses_batch() && !wants_grad(conv_.weight()) && !wants_grad(norm_.weight()) &&
         !wants_grad(x) && !(residual.defined() && wants_grad(residual));
}

Tensor ConvNorm::forward(const Tensor& x, bool relu, const Tensor& residual) {
  if (!is_fixed(x, residual)) return norm_.forward(conv_.forward(x), residual, relu);
  if (!folded_ || folded_->dtype != x.dtype() || folded_->conv_revision != conv_.revision() ||
      folded_->norm_revision != norm_.revision()) {
    const FoldedNorm folded = fold_norm(conv_.weight(), norm_.values(), x.dtype());
    folded_ = Folded{fix_conv2d(folded.weight, folded.bias, conv_.options(), x.dtype()), x.dtype(),
                     conv_.revision(), norm_.revision()};
  }
  return conv2d(folded_->conv, x, residual, relu);
}

}  // namespace tandem
