#include "tandem/ops/fill_kernel.h"

#include "tandem/core/on_dtype.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

template <class T>
struct Constant {
  T value;
  constexpr T operator()() const { return value; }
};

}  // namespace

template <>
void fill_kernel<Backend::cuda>(DType dtype, std::byte* out, std::int64_t count, double value,
                                StreamView stream) {
  Layout<1> layout;
  layout.sizes[0] = layout.numel = count;
  layout.strides[0][0] = 1;
  on_dtype(AllTypes{}, dtype, "fill", [&]<class T>() {
    elementwise_cuda(Constant<T>{convert<T>(value)}, layout, stream, reinterpret_cast<T*>(out));
  });
}

}  // namespace tandem::detail
