#include "softplus.h"

#include <cmath>

namespace td = tandem;

template <>
void softplus_kernel<td::Backend::cpu>(float* out, const float* x, std::int64_t count, td::StreamView) {
  td::parallel_for(count, 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = std::fmax(x[i], 0.0f) + std::log1p(std::exp(-std::fabs(x[i])));
  });
}

template <>
void softplus_gradient_kernel<td::Backend::cpu>(float* out, const float* g, const float* x, std::int64_t count,
                                                td::StreamView) {
  td::parallel_for(count, 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = g[i] / (1 + std::exp(-x[i]));
  });
}

namespace {

td::Tensor gradient_of(const td::Tensor& g, const td::Tensor& x) {
  const td::Tensor dense = g.contiguous(), out = td::Tensor::empty(x.shape(), x.dtype(), x.device());
  td::on_backend(x.device(), "softplus", [&]<td::Backend B>() {
    softplus_gradient_kernel<B>(out.data<float>(), dense.data<float>(), x.data<float>(), x.numel(),
                                td::current_stream(x.device()));
  });
  return out;
}

}  // namespace

td::Tensor softplus(const td::Tensor& x) {
  td::check(x.dtype() == td::DType::f32, "[softplus] expected f32, got {}", td::name_of(x.dtype()));
  const td::Tensor dense = x.detach().contiguous();
  td::Tensor out = td::Tensor::empty(x.shape(), x.dtype(), x.device());
  td::on_backend(x.device(), "softplus", [&]<td::Backend B>() {
    softplus_kernel<B>(out.data<float>(), dense.data<float>(), x.numel(), td::current_stream(x.device()));
  });
  if (td::wants_grad(x))
    td::record(out, "softplus", {&x},
               [dense](const td::Tensor& g) -> td::Gradients { return {gradient_of(g, dense)}; });
  return out;
}
