#include "tandem/ops/gather.h"

#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "tandem/core/error.h"
#include "tandem/device/buffer.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem {
namespace {

using IndexTypes = TypeList<std::int64_t, std::int32_t>;

// A row is `width` words; Count is the type that counts all of them, 32 bits where they suffice.
template <class Word, class Index, class Count>
__global__ void __launch_bounds__(elementwise_threads)
    gather_words(Word* out, const Word* table, const Index* indices, std::int64_t table_rows, Count count,
                 Count width) {
  const Count step = static_cast<Count>(gridDim.x) * blockDim.x;
  for (Count i = static_cast<Count>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const Count row = i / width, column = i - row * width;
    const std::int64_t from = indices[row];
    out[i] = from >= 0 && from < table_rows ? table[from * width + column] : Word{};
  }
}

template <class Word, class Index>
void gather(std::byte* out, const std::byte* table, const Index* indices, std::int64_t table_rows,
            std::int64_t rows, std::int64_t row_bytes, StreamView stream) {
  const std::int64_t width = row_bytes / static_cast<std::int64_t>(sizeof(Word)), count = rows * width;
  const unsigned blocks = blocks_for(count, elementwise_threads);
  auto* to = reinterpret_cast<Word*>(out);
  const auto* from = reinterpret_cast<const Word*>(table);
  if (count < std::int64_t{1} << 31)
    gather_words<<<blocks, elementwise_threads, 0, cuda_stream(stream)>>>(
        to, from, indices, table_rows, static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(width));
  else
    gather_words<<<blocks, elementwise_threads, 0, cuda_stream(stream)>>>(to, from, indices, table_rows,
                                                                          count, width);
  check_launch("gather_rows kernel");
}

// Indices outside the table sort behind all others.
template <class Index>
__global__ void __launch_bounds__(elementwise_threads)
    number_indices(const Index* indices, std::uint64_t* keys, std::int64_t* places, std::int64_t table_rows,
                   std::int64_t rows) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows; i += step) {
    const std::int64_t index = indices[i];
    keys[i] = static_cast<std::uint64_t>(index >= 0 && index < table_rows ? index : table_rows);
    places[i] = i;
  }
}

// The thread at the first of equal keys, and at a column, adds up that column of all their rows.
template <class T>
__global__ void __launch_bounds__(elementwise_threads)
    add_rows(T* out, const T* g, const std::uint64_t* keys, const std::int64_t* places,
             std::int64_t table_rows, std::int64_t rows, std::int64_t width) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows * width; i += step) {
    const std::int64_t first = i / width, column = i - first * width;
    const std::uint64_t key = keys[first];
    if (key == static_cast<std::uint64_t>(table_rows) || (first > 0 && keys[first - 1] == key)) continue;
    ComputeType<T> total{0};
    for (std::int64_t k = first; k < rows && keys[k] == key; ++k)
      total += convert<ComputeType<T>>(g[places[k] * width + column]);
    out[static_cast<std::int64_t>(key) * width + column] = convert<T>(total);
  }
}

}  // namespace

template <>
void gather_rows_kernel<Backend::cuda>(DType index_dtype, std::byte* out, const std::byte* table,
                                       const std::byte* indices, std::int64_t table_rows, std::int64_t rows,
                                       std::int64_t row_bytes, StreamView stream) {
  if (rows == 0 || row_bytes == 0) return;
  const std::uintptr_t together = reinterpret_cast<std::uintptr_t>(out) |
                                  reinterpret_cast<std::uintptr_t>(table) |
                                  static_cast<std::uintptr_t>(row_bytes);
  on_dtype(IndexTypes{}, index_dtype, "gather_rows", [&]<class Index>() {
    const auto* index = reinterpret_cast<const Index*>(indices);
    if (together % 16 == 0) return gather<uint4>(out, table, index, table_rows, rows, row_bytes, stream);
    if (together % 4 == 0)
      return gather<std::uint32_t>(out, table, index, table_rows, rows, row_bytes, stream);
    return gather<std::uint8_t>(out, table, index, table_rows, rows, row_bytes, stream);
  });
}

template <>
void scatter_rows_kernel<Backend::cuda>(DType dtype, DType index_dtype, std::byte* out, const std::byte* g,
                                        const std::byte* indices, std::int64_t table_rows, std::int64_t rows,
                                        std::int64_t width, StreamView stream) {
  const cudaStream_t queue = cuda_stream(stream);
  cuda_check(cudaMemsetAsync(out, 0, table_rows * width * size_of(dtype), queue), "cudaMemsetAsync");
  if (rows == 0 || width == 0) return;
  // A stable sort brings the places that took one row together, in their order.
  const std::size_t list = static_cast<std::size_t>(rows) * sizeof(std::uint64_t);
  const Buffer memory(4 * list, stream);
  auto* keys = reinterpret_cast<std::uint64_t*>(memory.data());
  auto* sorted_keys = keys + rows;
  auto* places = reinterpret_cast<std::int64_t*>(sorted_keys + rows);
  auto* sorted_places = places + rows;
  on_dtype(IndexTypes{}, index_dtype, "gather_rows", [&]<class Index>() {
    number_indices<<<blocks_for(rows, elementwise_threads), elementwise_threads, 0, queue>>>(
        reinterpret_cast<const Index*>(indices), keys, places, table_rows, rows);
    check_launch("gather_rows gradient kernel");
  });
  const int bits = std::bit_width(static_cast<std::uint64_t>(table_rows));
  std::size_t scratch_bytes = 0;
  const auto sort = [&](void* scratch) {
    cuda_check(cub::DeviceRadixSort::SortPairs(scratch, scratch_bytes, keys, sorted_keys, places,
                                               sorted_places, rows, 0, bits, queue),
               "DeviceRadixSort::SortPairs");
  };
  sort(nullptr);
  const Buffer scratch(scratch_bytes, stream);
  sort(scratch.data());
  on_dtype(FloatTypes{}, dtype, "gather_rows", [&]<class T>() {
    add_rows<<<blocks_for(rows * width, elementwise_threads), elementwise_threads, 0, queue>>>(
        reinterpret_cast<T*>(out), reinterpret_cast<const T*>(g), sorted_keys, sorted_places, table_rows,
        rows, width);
    check_launch("gather_rows gradient kernel");
  });
}

}  // namespace tandem
