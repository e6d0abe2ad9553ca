#include "tandem/ops/linear_products.h"

#include "tandem/core/check.h"
#include "tandem/ops/bias.h"
#include "tandem/ops/linear_products_kernel.h"
#include "tandem/ops/matmul.h"
#include "tandem/ops/version_kernel.h"

namespace tandem {
namespace {

// a · b, plus `bias` (may be undefined) in every row. The matrices may be transposed views.
Tensor product(const Tensor& a, const Tensor& b, const Tensor& bias, Version version) {
  const Device device = common_device("linear products", {&a, &b});
  common_dtype("linear products", {&a, &b});
  on_dtype(detail::ProductTypes{}, a.dtype(), "linear products", []<class T>() {});
  check(a.rank() == 2 && b.rank() == 2 && a.size(1) == b.size(0),
        "[linear products] expected matrices (m, k) and (k, n), got {} and {}", a.shape().to_string(),
        b.shape().to_string());
  if (bias.defined()) {
    common_device("linear products", {&a, &bias});
    common_dtype("linear products", {&a, &bias});
    check(bias.rank() == 1 && bias.size(0) == b.size(1), "[linear products] expected bias ({}), got {}",
          b.size(1), bias.shape().to_string());
  }
  const Tensor dense_bias = bias.defined() ? bias.contiguous() : Tensor();
  Tensor out;
  detail::on_version(version, device, "linear products", [&]<Version V>() {
    if constexpr (V == Version::reference || V == Version::cuda_simple) {
      out = Tensor::empty({a.size(0), b.size(1)}, a.dtype(), device);
      if (out.numel() == 0) return;
      detail::naive_product_kernel<V>(a.dtype(),
                                      {.rows = a.size(0),
                                       .columns = b.size(1),
                                       .depth = a.size(1),
                                       .a_row_stride = a.strides()[0],
                                       .a_column_stride = a.strides()[1],
                                       .b_row_stride = b.strides()[0],
                                       .b_column_stride = b.strides()[1]},
                                      a.bytes(), b.bytes(), bias.defined() ? dense_bias.bytes() : nullptr,
                                      out.bytes(), current_stream(device));
    } else {
      out = matmul(a, b);
      if (bias.defined()) out = add_bias(out, dense_bias);
    }
  });
  return out;
}

}  // namespace

Tensor linear_output(const Tensor& x, const Tensor& weight, const Tensor& bias, Version version) {
  return product(x.detach(), weight.detach().transpose(), bias.detach(), version);
}

Tensor linear_input_gradient(const Tensor& dy, const Tensor& weight, Version version) {
  return product(dy.detach(), weight.detach(), Tensor(), version);
}

Tensor linear_weight_gradient(const Tensor& dy, const Tensor& x, Version version) {
  return product(dy.detach().transpose(), x.detach(), Tensor(), version);
}

}  // namespace tandem
