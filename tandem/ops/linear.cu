// x · weightᵀ + bias for few rows: the weight is read once, and the bias needs no kernel of its own. One warp
// per column of the result.
#include "tandem/device/cuda.h"
#include "tandem/ops/linear_kernel.h"

namespace tandem::detail {
namespace {

constexpr int warp = 32, threads = 128;

template <int rows>
__global__ void __launch_bounds__(threads) multiply_few_rows(FewRowsPlan p) {
  const std::int64_t column = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / warp;
  const int lane = static_cast<int>(threadIdx.x) % warp;
  if (column >= p.columns) return;
  const std::int64_t fours = p.depth / 4;
  const auto* const weight = reinterpret_cast<const float4*>(p.weight) + column * fours;
  const auto* const x = reinterpret_cast<const float4*>(p.x);
  float sum[rows] = {};
#pragma unroll 4
  for (std::int64_t i = lane; i < fours; i += warp) {
    const float4 w = weight[i];
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      const float4 v = x[row * fours + i];
      sum[row] += w.x * v.x + w.y * v.y + w.z * v.z + w.w * v.w;
    }
  }
#pragma unroll
  for (int row = 0; row < rows; ++row) {
#pragma unroll
    for (int distance = warp / 2; distance > 0; distance /= 2)
      sum[row] += __shfl_xor_sync(0xffffffffu, sum[row], distance);
    if (lane == 0) p.y[row * p.columns + column] = sum[row] + (p.bias ? p.bias[column] : 0.0f);
  }
}

}  // namespace

template <>
void few_rows_linear_kernel<Backend::cuda>(const FewRowsPlan& plan, StreamView stream) {
  constexpr int columns_per_block = threads / warp;
  const auto blocks = static_cast<unsigned>((plan.columns + columns_per_block - 1) / columns_per_block);
  const auto launch = [&](auto kernel) { kernel<<<blocks, threads, 0, cuda_stream(stream)>>>(plan); };
  static_assert(max_few_rows == 4);
  switch (plan.rows) {
    case 1:
      launch(multiply_few_rows<1>);
      break;
    case 2:
      launch(multiply_few_rows<2>);
      break;
    case 3:
      launch(multiply_few_rows<3>);
      break;
    default:
      launch(multiply_few_rows<4>);
  }
  check_launch("linear");
}

}  // namespace tandem::detail
