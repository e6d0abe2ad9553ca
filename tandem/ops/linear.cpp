#include "tandem/ops/linear.h"

#include "tandem/core/check.h"
#include "tandem/ops/bias.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/reduce.h"
#include "tandem/tensor/tape.h"

namespace tandem {

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  common_device("linear", {&x, &weight});
  common_dtype("linear", {&x, &weight});
  check(x.rank() == 2 && weight.rank() == 2 && x.size(1) == weight.size(1),
        "[linear] expected x (n, in) and weight (out, in), got {} and {}", x.shape().to_string(),
        weight.shape().to_string());
  if (bias.defined()) {
    common_device("linear", {&x, &bias});
    common_dtype("linear", {&x, &bias});
    check(bias.rank() == 1 && bias.size(0) == weight.size(0), "[linear] expected bias ({}), got {}",
          weight.size(0), bias.shape().to_string());
  }
  Tensor out = matmul(x.detach(), weight.detach().transpose());
  if (bias.defined()) out = add_bias(out, bias.detach());
  const bool needs_dx = wants_grad(x), needs_dweight = wants_grad(weight);
  const bool needs_dbias = bias.defined() && wants_grad(bias);
  if (needs_dx || needs_dweight || needs_dbias)
    record(out, "linear", {&x, &weight, &bias},
           [x = needs_dweight ? x.detach() : Tensor(), weight = needs_dx ? weight.detach() : Tensor(),
            needs_dbias, precision = matmul_precision()](const Tensor& g) {
             const MatmulPrecisionScope scope(precision);
             return Gradients{weight.defined() ? matmul(g, weight) : Tensor(),
                              x.defined() ? matmul(g.transpose(), x) : Tensor(),
                              needs_dbias ? sum(g, {0}) : Tensor()};
           });
  return out;
}

}  // namespace tandem
