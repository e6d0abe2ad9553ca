#include "tandem/ops/linear.h"

#include <fmt/ranges.h>

#include "tandem/core/check.h"
#include "tandem/ops/bias.h"
#include "tandem/ops/matmul_kernel.h"
#include "tandem/ops/shard_sums.h"
#include "tandem/tensor/tape.h"

namespace tandem {
namespace {

// x · factor.
Tensor multiply_rows(const Tensor& x, const Tensor& factor) {
  const ShardPart* const part = detail::vendor_part(x.device());
  if (!part) return matmul(x, factor);
  Tensor out = Tensor::empty({x.size(0), factor.size(1)}, x.dtype(), x.device());
  for (const IndexRange rows : detail::shard_ranges(*part, x.size(0), "linear"))
    if (rows.count() > 0)
      detail::write_aligned(out.slice(0, rows.begin, rows.end), [&](const Tensor& to) {
        detail::multiply_into(to, detail::aligned_slice(x, rows), factor, matmul_precision());
      });
  return out;
}

Tensor weight_gradient(const Tensor& g, const Tensor& x) {
  const ShardPart* const part = detail::shard_part();
  if (!part) return matmul(g.transpose(), x);
  return detail::stack_shards(*part, {g.size(1), x.size(1)},
                              {.op = "linear", .size = x.size(0), .dtype = x.dtype(), .device = x.device()},
                              [&](const Tensor& to, IndexRange rows) {
                                detail::write_aligned(to, [&](const Tensor& sum) {
                                  detail::multiply_into(sum, detail::aligned_slice(g, rows).transpose(),
                                                        detail::aligned_slice(x, rows), matmul_precision());
                                });
                              });
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  common_device("linear", {&x, &weight});
  common_dtype("linear", {&x, &weight});
  check(x.rank() == 2 && weight.rank() == 2 && x.size(1) == weight.size(1),
        "[linear] expected x (n, in) and weight (out, in), got {} and {}", x.shape(), weight.shape());
  if (bias.defined()) {
    common_device("linear", {&x, &bias});
    common_dtype("linear", {&x, &bias});
    check(bias.rank() == 1 && bias.size(0) == weight.size(0), "[linear] expected bias ({}), got {}",
          weight.size(0), bias.shape());
  }
  Tensor out = multiply_rows(x.detach(), weight.detach().transpose());
  if (bias.defined()) out = add_bias(out, bias.detach());
  const bool needs_dx = wants_grad(x), needs_dweight = wants_grad(weight);
  const bool needs_dbias = bias.defined() && wants_grad(bias);
  if (needs_dx || needs_dweight || needs_dbias)
    record(out, "linear", {&x, &weight, &bias},
           [x = needs_dweight ? x.detach() : Tensor(), weight = needs_dx ? weight.detach() : Tensor(),
            needs_dbias, precision = matmul_precision()](const Tensor& g) {
             const MatmulPrecisionScope scope(precision);
             return Gradients{weight.defined() ? multiply_rows(g, weight) : Tensor(),
                              x.defined() ? weight_gradient(g, x) : Tensor(),
                              needs_dbias ? detail::broadcast_gradient(g, {g.size(1)}) : Tensor()};
           });
  return out;
}

}  // namespace tandem
