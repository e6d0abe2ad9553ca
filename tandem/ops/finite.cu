// The array addresses are passed as kernel arguments, with one row of blocks per array. A thread that finds a
// value that is not finite sets one word.
#include "tandem/ops/finite_kernel.h"

#include <algorithm>

#include "tandem/device/buffer.h"
#include "tandem/device/driver.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

constexpr int threads = 256;
constexpr int max_arrays = 160;           // per launch; kernel arguments are limited to 4 KB
constexpr std::int64_t max_blocks = 256;  // per array

struct ArrayTable {
  FloatArray array[max_arrays];
};
static_assert(sizeof(ArrayTable) <= 4000);

template <class T>
__device__ bool has_bad_value(const T* __restrict__ values, std::int64_t count) {
  constexpr int width = 16 / sizeof(T);
  const std::int64_t first = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  const bool aligned = is_aligned<width>(values);
  const std::int64_t packs = aligned ? count / width : 0;
  bool bad = false;
  for (std::int64_t p = first; p < packs; p += step) {
    const Pack<T, width> pack = reinterpret_cast<const Pack<T, width>*>(values)[p];
#pragma unroll
    for (int i = 0; i < width; ++i) bad |= !is_finite_number(pack.value[i]);
  }
  for (std::int64_t i = packs * width + first; i < count; i += step) bad |= !is_finite_number(values[i]);
  return bad;
}

__global__ void __launch_bounds__(threads) find_bad_values(ArrayTable table, unsigned* found) {
  const FloatArray array = table.array[blockIdx.y];
  bool bad = false;
  switch (array.dtype) {
    case DType::f64:
      bad = has_bad_value(reinterpret_cast<const double*>(array.data), array.count);
      break;
    case DType::bf16:
      bad = has_bad_value(reinterpret_cast<const BFloat16*>(array.data), array.count);
      break;
    default:
      bad = has_bad_value(reinterpret_cast<const float*>(array.data), array.count);
  }
  if (bad) *found = 1;  // a benign race: every writer writes the same value
}

}  // namespace

template <>
bool all_finite_kernel<Backend::cuda>(std::span<const FloatArray> arrays, StreamView stream) {
  const Buffer found(sizeof(unsigned), stream);
  auto* const word = reinterpret_cast<unsigned*>(found.data());
  cuda_check(cudaMemsetAsync(word, 0, sizeof(unsigned), cuda_stream(stream)), "cudaMemsetAsync");
  while (!arrays.empty()) {
    const std::size_t count = std::min<std::size_t>(arrays.size(), max_arrays);
    ArrayTable table{};
    std::copy_n(arrays.begin(), count, table.array);
    std::int64_t max_bytes = 0;
    for (const FloatArray& array : arrays.first(count))
      max_bytes = std::max(max_bytes, array.count * static_cast<std::int64_t>(size_of(array.dtype)));
    constexpr std::int64_t block_bytes = 4 * 16 * threads;  // a few packs per thread
    const auto blocks = std::clamp<std::int64_t>((max_bytes + block_bytes - 1) / block_bytes, 1, max_blocks);
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(count));
    find_bad_values<<<grid, threads, 0, cuda_stream(stream)>>>(table, word);
    check_launch("all_finite kernel");
    arrays = arrays.subspan(count);
  }
  unsigned result = 0;
  copy_bytes<Backend::cuda>(&result, word, sizeof(result), stream);
  stream.synchronize();
  return result == 0;
}

}  // namespace tandem::detail
