#include "tandem/ops/gather_kernel.h"

#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "tandem/core/error.h"
#include "tandem/core/on_dtype.h"
#include "tandem/device/buffer.h"
#include "tandem/ops/elementwise.cuh"

namespace tandem::detail {
namespace {

using IndexTypes = TypeList<std::int64_t, std::int32_t>;

// A row is `width` words. Count is the type of the word index: 32 bits where that is enough.
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
void gather(const RowIndices& indices, std::byte* out, const std::byte* table, std::int64_t row_bytes,
            StreamView stream) {
  const std::int64_t width = row_bytes / static_cast<std::int64_t>(sizeof(Word)),
                     count = indices.count * width;
  const unsigned blocks = blocks_for(count, elementwise_threads);
  auto* to = reinterpret_cast<Word*>(out);
  const auto* from = reinterpret_cast<const Word*>(table);
  const auto* index = reinterpret_cast<const Index*>(indices.data);
  if (count < std::int64_t{1} << 31)
    gather_words<<<blocks, elementwise_threads, 0, cuda_stream(stream)>>>(to, from, index, indices.table_rows,
                                                                          static_cast<std::uint32_t>(count),
                                                                          static_cast<std::uint32_t>(width));
  else
    gather_words<<<blocks, elementwise_threads, 0, cuda_stream(stream)>>>(to, from, index, indices.table_rows,
                                                                          count, width);
  check_launch("gather_rows kernel");
}

// Sort keys and positions of the indices. Indices outside the table get a key larger than all others.
template <class Index>
__global__ void __launch_bounds__(elementwise_threads)
    make_sort_keys(const Index* indices, std::uint64_t* keys, std::int64_t* positions,
                   std::int64_t table_rows, std::int64_t rows) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows; i += step) {
    const std::int64_t index = indices[i];
    keys[i] = static_cast<std::uint64_t>(index >= 0 && index < table_rows ? index : table_rows);
    positions[i] = i;
  }
}

// One thread per first occurrence of a key and column: it sums the column over all rows with that key.
template <class T>
__global__ void __launch_bounds__(elementwise_threads)
    sum_rows(T* out, const T* g, const std::uint64_t* keys, const std::int64_t* positions,
             std::int64_t table_rows, std::int64_t rows, std::int64_t width) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows * width; i += step) {
    const std::int64_t first = i / width, column = i - first * width;
    const std::uint64_t key = keys[first];
    if (key == static_cast<std::uint64_t>(table_rows) || (first > 0 && keys[first - 1] == key)) continue;
    ComputeType<T> total{0};
    for (std::int64_t k = first; k < rows && keys[k] == key; ++k)
      total += convert<ComputeType<T>>(g[positions[k] * width + column]);
    out[static_cast<std::int64_t>(key) * width + column] = convert<T>(total);
  }
}

}  // namespace

template <>
void gather_rows_kernel<Backend::cuda>(const RowIndices& indices, std::byte* out, const std::byte* table,
                                       std::int64_t row_bytes, StreamView stream) {
  if (indices.count == 0 || row_bytes == 0) return;
  const std::uintptr_t alignment_bits = reinterpret_cast<std::uintptr_t>(out) |
                                        reinterpret_cast<std::uintptr_t>(table) |
                                        static_cast<std::uintptr_t>(row_bytes);
  on_dtype(IndexTypes{}, indices.dtype, "gather_rows", [&]<class Index>() {
    if (alignment_bits % 16 == 0) return gather<uint4, Index>(indices, out, table, row_bytes, stream);
    if (alignment_bits % 4 == 0) return gather<std::uint32_t, Index>(indices, out, table, row_bytes, stream);
    return gather<std::uint8_t, Index>(indices, out, table, row_bytes, stream);
  });
}

template <>
void scatter_rows_kernel<Backend::cuda>(const RowIndices& indices, DType dtype, std::byte* out,
                                        const std::byte* g, std::int64_t width, StreamView stream) {
  const std::int64_t table_rows = indices.table_rows, rows = indices.count;
  const cudaStream_t queue = cuda_stream(stream);
  cuda_check(cudaMemsetAsync(out, 0, table_rows * width * size_of(dtype), queue), "cudaMemsetAsync");
  if (rows == 0 || width == 0) return;
  // A stable sort groups the positions that read the same row and keeps their order.
  const std::size_t list_bytes = static_cast<std::size_t>(rows) * sizeof(std::uint64_t);
  const Buffer memory(4 * list_bytes, stream);
  auto* keys = reinterpret_cast<std::uint64_t*>(memory.data());
  auto* sorted_keys = keys + rows;
  auto* positions = reinterpret_cast<std::int64_t*>(sorted_keys + rows);
  auto* sorted_positions = positions + rows;
  on_dtype(IndexTypes{}, indices.dtype, "gather_rows", [&]<class Index>() {
    make_sort_keys<<<blocks_for(rows, elementwise_threads), elementwise_threads, 0, queue>>>(
        reinterpret_cast<const Index*>(indices.data), keys, positions, table_rows, rows);
    check_launch("gather_rows gradient kernel");
  });
  const int bits = std::bit_width(static_cast<std::uint64_t>(table_rows));
  std::size_t scratch_bytes = 0;
  const auto sort = [&](void* scratch) {
    cuda_check(cub::DeviceRadixSort::SortPairs(scratch, scratch_bytes, keys, sorted_keys, positions,
                                               sorted_positions, rows, 0, bits, queue),
               "DeviceRadixSort::SortPairs");
  };
  sort(nullptr);
  const Buffer scratch(scratch_bytes, stream);
  sort(scratch.data());
  on_dtype(FloatTypes{}, dtype, "gather_rows", [&]<class T>() {
    sum_rows<<<blocks_for(rows * width, elementwise_threads), elementwise_threads, 0, queue>>>(
        reinterpret_cast<T*>(out), reinterpret_cast<const T*>(g), sorted_keys, sorted_positions, table_rows,
        rows, width);
    check_launch("gather_rows gradient kernel");
  });
}

}  // namespace tandem::detail
