#include "tandem/ops/linear.h"

#include <fmt/ranges.h>

#include <cstdint>

#include "tandem/core/check.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/bias.h"
#include "tandem/ops/linear_kernel.h"
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

// x · weightᵀ + bias of one to four rows on a GPU, or an empty handle where that kernel is not used: the bits
// of a row in fp32 and TF32 do not depend on the other rows.
Tensor multiply_few_rows(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const bool applicable = x.device().is_cuda() && x.dtype() == DType::f32 &&
                          matmul_precision() == MatmulPrecision::bf16 && x.size(0) > 0 &&
                          x.size(0) <= detail::max_few_rows && x.size(1) > 0 && x.size(1) % 4 == 0 &&
                          weight.size(0) > 0 && weight.is_contiguous() && !detail::vendor_part(x.device());
  const auto is_aligned = [](const Tensor& tensor) {
    return reinterpret_cast<std::uintptr_t>(tensor.bytes()) % 16 == 0;
  };
  if (!applicable || !is_aligned(weight)) return {};
  const Tensor rows = x.contiguous(), added = bias.defined() ? bias.contiguous() : Tensor();
  if (!is_aligned(rows)) return {};
  Tensor out = Tensor::empty({x.size(0), weight.size(0)}, DType::f32, x.device());
  on_backend(x.device(), "linear", [&]<Backend B>() {
    if constexpr (B == Backend::cuda)
      detail::few_rows_linear_kernel<B>({.rows = x.size(0),
                                         .columns = weight.size(0),
                                         .depth = x.size(1),
                                         .y = out.data<float>(),
                                         .x = rows.data<float>(),
                                         .weight = weight.data<float>(),
                                         .bias = added.defined() ? added.data<float>() : nullptr},
                                        current_stream(x.device()));
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
  const bool needs_dx = wants_grad(x), needs_dweight = wants_grad(weight);
  const bool needs_dbias = bias.defined() && wants_grad(bias),
             needs_gradient = needs_dx || needs_dweight || needs_dbias;
  Tensor out;
  if (!needs_gradient)
    out = multiply_few_rows(x.detach(), weight.detach(), bias.defined() ? bias.detach() : Tensor());
  if (!out.defined()) {
    out = multiply_rows(x.detach(), weight.detach().transpose());
    if (bias.defined()) out = add_bias(out, bias.detach());
  }
  if (needs_gradient)
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
