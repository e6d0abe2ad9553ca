#include "tandem/ops/xxt.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/gemm.h"
#include "tandem/ops/version_kernel.h"
#include "tandem/ops/xxt_kernel.h"
#include "tandem/tensor/tape.h"

namespace tandem::detail {
namespace {

template <class T>
T dot(const T* a, const T* b, std::int64_t count) {
  SumType<T> sum = 0;
  for (std::int64_t p = 0; p < count; ++p)
    sum += static_cast<SumType<T>>(a[p]) * static_cast<SumType<T>>(b[p]);
  return static_cast<T>(sum);
}

// One band of rows per thread, all of the same area: the area of the triangle above row r grows with r².
template <class T>
void xxt_of_integers(const XxtShape& s, const T* x, T* out) {
  constexpr std::int64_t min_rows_per_thread = 32;
  const std::int64_t bands = std::clamp<std::int64_t>(s.rows / min_rows_per_thread, 1, thread_count());
  const auto boundary = [&](std::int64_t band) {
    const double share = static_cast<double>(band) / static_cast<double>(bands);
    return std::llround(std::sqrt(share) * static_cast<double>(s.rows));
  };
  parallel_for(bands, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = boundary(first); i < boundary(last); ++i)
      for (std::int64_t j = 0; j <= i; ++j)
        out[i * s.rows + j] = out[j * s.rows + i] = dot(x + i * s.columns, x + j * s.columns, s.columns);
  });
}

template <class T>
void xxt_parallel(const XxtShape& s, const T* x, T* out) {
  if constexpr (std::is_integral_v<T>)
    xxt_of_integers(s, x, out);
  else if (s.columns == 0)
    std::fill_n(out, s.rows * s.rows, T{0});
  else
    gemm<T>({.size = {s.rows, s.rows, s.columns},
             .a = {.data = x, .leading_dimension = s.columns},
             .b = {.data = x, .leading_dimension = s.columns, .transposed = true},
             .c = out,
             .leading_dimension_c = s.rows,
             .symmetric = true});
}

}  // namespace

template <>
void xxt_kernel<Version::parallel>(DType dtype, const XxtShape& shape, const std::byte* x, std::byte* out,
                                   StreamView) {
  on_dtype(XxtTypes{}, dtype, "xxt",
           [&]<class T>() { xxt_parallel(shape, reinterpret_cast<const T*>(x), reinterpret_cast<T*>(out)); });
}

}  // namespace tandem::detail

namespace tandem {

Tensor xxt(const Tensor& x, Version version, MatmulPrecision precision) {
  const Device device = common_device("xxt", {&x});
  on_dtype(detail::XxtTypes{}, x.dtype(), "xxt", []<class T>() {});
  check(x.rank() == 2, "[xxt] expected a matrix, got shape {}", x.shape().to_string());
  const detail::XxtShape shape{.rows = x.size(0), .columns = x.size(1), .precision = precision};
  Tensor out = Tensor::empty({shape.rows, shape.rows}, x.dtype(), device);
  const Tensor dense = x.detach().contiguous();
  detail::on_version(version, device, "xxt", [&]<Version V>() {
    if (out.numel() > 0)
      detail::xxt_kernel<V>(x.dtype(), shape, dense.bytes(), out.bytes(), current_stream(device));
  });
  return out;
}

Tensor xxt(const Tensor& x) {
  Tensor out = xxt(x, tuned_version(x.device()), matmul_precision());
  if (wants_grad(x))
    record(out, "xxt", {&x},
           [x = x.detach()](const Tensor& g) { return Gradients{matmul(add(g, g.transpose()), x)}; });
  return out;
}

}  // namespace tandem
