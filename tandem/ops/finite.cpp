#include "tandem/ops/finite.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/finite_kernel.h"

namespace tandem::detail {

template <>
bool all_finite_kernel<Backend::cpu>(std::span<const FloatArray> arrays, StreamView) {
  constexpr std::int64_t max_elements = 1 << 15;  // per piece: large tensors are split over the threads
  std::vector<FloatArray> pieces;
  for (const FloatArray& array : arrays)
    for (std::int64_t begin = 0; begin < array.count; begin += max_elements)
      pieces.push_back({array.data + static_cast<std::size_t>(begin) * size_of(array.dtype),
                        std::min(max_elements, array.count - begin), array.dtype});
  std::atomic<bool> finite = true;
  parallel_for(static_cast<std::int64_t>(pieces.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end && finite.load(std::memory_order_relaxed); ++p) {
      const FloatArray& piece = pieces[static_cast<std::size_t>(p)];
      on_dtype(FloatTypes{}, piece.dtype, "all_finite", [&]<class T>() {
        const T* values = reinterpret_cast<const T*>(piece.data);
        unsigned bad = 0;
        with_simd([&]<std::size_t>() __attribute__((always_inline)) {
          // No early exit, so that the loop is vectorized.
          for (std::int64_t i = 0; i < piece.count; ++i) bad |= is_finite_number(values[i]) ? 0u : 1u;
        });
        if (bad != 0) finite.store(false, std::memory_order_relaxed);
      });
    }
  });
  return finite;
}

}  // namespace tandem::detail

namespace tandem {

bool all_finite(std::span<const Tensor> tensors) {
  std::vector<Tensor> dense;  // owns the memory that the arrays point to
  std::vector<detail::FloatArray> arrays;
  for (const Tensor& tensor : tensors) {
    common_device("all_finite", {&tensors.front(), &tensor});
    if (!is_floating(tensor.dtype()) || tensor.numel() == 0) continue;
    dense.push_back(tensor.detach().contiguous());
    arrays.push_back({dense.back().bytes(), tensor.numel(), tensor.dtype()});
  }
  if (arrays.empty()) return true;
  const Device device = tensors.front().device();
  return on_backend(device, "all_finite", [&]<Backend B>() {
    return detail::all_finite_kernel<B>(arrays, current_stream(device));
  });
}

}  // namespace tandem
