// NT-Xent on CUDA: one block per row of similarities. Rows of the usual batches (up to 8,192) fit into the L1
// cache, so that only the first pass reads memory. Reductions have a fixed order.
#include "tandem/ops/nt_xent_kernel.h"

#include "tandem/ops/row_kernel.cuh"

namespace tandem::detail {
namespace {

using namespace row_ops;

template <class T>
__global__ void __launch_bounds__(threads)
    compare_row(NtXentSize size, T scale, T* __restrict__ statistics, const T* __restrict__ similarities) {
  for (std::int64_t row = blockIdx.x; row < size.rows; row += gridDim.x) {
    const T* s = similarities + row * size.rows;
    const std::int64_t partner = size.partner(row);
    T others_max = negative_infinity<T>();  // of the rows except the partner
#pragma unroll 4
    for (std::int64_t i = threadIdx.x; i < size.rows; i += threads)
      others_max = Max{}(others_max, i == row || i == partner ? negative_infinity<T>() : s[i]);
    others_max = block_reduce(Max{}, others_max);
    const T to_partner = s[partner], max = Max{}(others_max, to_partner);
    T sum = 0;
#pragma unroll 4
    for (std::int64_t i = threadIdx.x; i < size.rows; i += threads)
      sum += i == row ? T{0} : exponential((s[i] - max) * scale);
    sum = block_reduce(Sum{}, sum);
    if (threadIdx.x != 0) continue;
    const T log_sum = logarithm(sum);
    statistics[row_loss * size.rows + row] = log_sum - (to_partner - max) * scale;
    statistics[row_hit * size.rows + row] = to_partner > others_max ? T{1} : T{0};
    statistics[row_max * size.rows + row] = max;
    statistics[row_log_sum * size.rows + row] = log_sum;
  }
}

template <class T>
__global__ void __launch_bounds__(threads)
    row_gradient(NtXentSize size, T scale, T weight, T* __restrict__ similarities,
                 const T* __restrict__ statistics) {
  const T* max = statistics + row_max * size.rows;
  const T* log_sum = statistics + row_log_sum * size.rows;
  for (std::int64_t row = blockIdx.x; row < size.rows; row += gridDim.x) {
    T* s = similarities + row * size.rows;
    const std::int64_t partner = size.partner(row);
    const T max_of_row = max[row], log_sum_of_row = log_sum[row];
#pragma unroll 4
    for (std::int64_t i = threadIdx.x; i < size.rows; i += threads) {
      const T of_row = exponential((s[i] - max_of_row) * scale - log_sum_of_row);
      const T of_column = exponential((s[i] - max[i]) * scale - log_sum[i]);
      const T target = i == partner ? T{2} : T{0};
      s[i] = i == row ? T{0} : (of_row + of_column - target) * weight;
    }
  }
}

}  // namespace

template <>
void nt_xent_rows_kernel<Backend::cuda>(DType dtype, const NtXentSize& size, std::byte* statistics,
                                        const std::byte* similarities, StreamView stream) {
  on_dtype(NtXentTypes{}, dtype, "nt_xent", [&]<class T>() {
    compare_row<T><<<blocks_for(size.rows, 1), threads, 0, cuda_stream(stream)>>>(
        size, static_cast<T>(1 / size.temperature), reinterpret_cast<T*>(statistics),
        reinterpret_cast<const T*>(similarities));
  });
  check_launch("nt_xent kernel");
}

template <>
void nt_xent_gradient_kernel<Backend::cuda>(DType dtype, const NtXentSize& size, std::byte* similarities,
                                            const std::byte* statistics, StreamView stream) {
  on_dtype(NtXentTypes{}, dtype, "nt_xent", [&]<class T>() {
    const double weight = 1 / (static_cast<double>(size.rows) * size.temperature);
    row_gradient<T><<<blocks_for(size.rows, 1), threads, 0, cuda_stream(stream)>>>(
        size, static_cast<T>(1 / size.temperature), static_cast<T>(weight),
        reinterpret_cast<T*>(similarities), reinterpret_cast<const T*>(statistics));
  });
  check_launch("nt_xent gradient kernel");
}

}  // namespace tandem::detail
