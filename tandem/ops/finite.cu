// The addresses travel as arguments of the launch: a row of blocks an array, and one word that a thread sets
// which meets a number that is not finite.
#include "tandem/ops/finite.h"

#include <algorithm>

#include "tandem/device/buffer.h"
#include "tandem/device/driver.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem {
namespace {

constexpr int threads = 256;
constexpr int most_arrays = 160;           // a launch, whose arguments have room for 4 KB
constexpr std::int64_t most_blocks = 256;  // an array

struct ArrayTable {
  FloatArray array[most_arrays];
};
static_assert(sizeof(ArrayTable) <= 4000);

template <class T>
__device__ bool meets_bad(const T* __restrict__ values, std::int64_t count) {
  constexpr int width = 16 / sizeof(T);
  const std::int64_t first = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  const bool aligned = reinterpret_cast<std::uintptr_t>(values) % 16 == 0;
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

__global__ void __launch_bounds__(threads) find_bad(ArrayTable table, unsigned* found) {
  const FloatArray array = table.array[blockIdx.y];
  bool bad = false;
  switch (array.dtype) {
    case DType::f64:
      bad = meets_bad(reinterpret_cast<const double*>(array.data), array.count);
      break;
    case DType::bf16:
      bad = meets_bad(reinterpret_cast<const BFloat16*>(array.data), array.count);
      break;
    default:
      bad = meets_bad(reinterpret_cast<const float*>(array.data), array.count);
  }
  if (bad) *found = 1;  // whoever else writes writes the same
}

}  // namespace

template <>
bool all_finite_kernel<Backend::cuda>(std::span<const FloatArray> arrays, StreamView stream) {
  const Buffer found(sizeof(unsigned), stream);
  auto* const word = reinterpret_cast<unsigned*>(found.data());
  cuda_check(cudaMemsetAsync(word, 0, sizeof(unsigned), cuda_stream(stream)), "cudaMemsetAsync");
  while (!arrays.empty()) {
    const std::size_t count = std::min<std::size_t>(arrays.size(), most_arrays);
    ArrayTable table{};
    std::copy_n(arrays.begin(), count, table.array);
    std::int64_t most_bytes = 0;
    for (const FloatArray& array : arrays.first(count))
      most_bytes = std::max(most_bytes, array.count * static_cast<std::int64_t>(size_of(array.dtype)));
    constexpr std::int64_t block_bytes = 4 * 16 * threads;  // a few packs for each thread
    const auto blocks =
        std::clamp<std::int64_t>((most_bytes + block_bytes - 1) / block_bytes, 1, most_blocks);
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(count));
    find_bad<<<grid, threads, 0, cuda_stream(stream)>>>(table, word);
    check_launch("all_finite kernel");
    arrays = arrays.subspan(count);
  }
  unsigned answer = 0;
  copy_bytes<Backend::cuda>(&answer, word, sizeof(answer), stream);
  stream.synchronize();
  return answer == 0;
}

}  // namespace tandem
