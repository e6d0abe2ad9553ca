#include "tandem/ops/block_epilogue.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tandem/core/check.h"
#include "tandem/core/on_dtype.h"
#include "tandem/core/simd.h"
#include "tandem/ops/block_product.h"
#include "tandem/ops/fused_activation_cpu.h"

namespace tandem::detail {
namespace {

using ResultTypes = TypeList<BFloat16, float, std::uint8_t>;

template <class T>
[[gnu::always_inline]] inline float stored_value(T stored, Quantization quantization) {
  if constexpr (std::same_as<T, std::uint8_t>)
    return quantization.scale * (static_cast<float>(stored) - quantization.zero);
  else
    return static_cast<float>(stored);
}

template <class T>
[[gnu::always_inline]] inline T rounded(float value, float inverse_scale, float zero) {
  if constexpr (std::same_as<T, std::uint8_t>)
    return static_cast<std::uint8_t>(std::nearbyintf(std::clamp(value * inverse_scale + zero, 0.0f, 255.0f)));
  else
    return T(value);
}

template <class Sum, class T>
[[gnu::always_inline]] inline void finish_run(const BlockEpilogue& epilogue, const Sum* sums,
                                              const BlockTarget& target, const BlockRun& run) {
  auto* const results = reinterpret_cast<T*>(target.result);
  const auto* const residuals = reinterpret_cast<const T*>(epilogue.residual);
  const float inverse_scale = 1 / epilogue.result.scale, zero = epilogue.result.zero;
  const float* const scale = epilogue.scale ? epilogue.scale + target.first_column : nullptr;
  const float* const bias = epilogue.bias ? epilogue.bias + target.first_column : nullptr;
  const bool relu = epilogue.activation == FusedActivation::relu;
  for (std::int64_t r = 0; r < run.count; ++r) {
    float values[block_columns];
    const Sum* const row = sums + (run.row + r) * block_columns;
    const std::int64_t at = run.offset + r * target.row_stride + target.first_column;
    for (std::int64_t j = 0; j < block_columns; ++j) values[j] = static_cast<float>(row[j]);
    if (scale)
      for (std::int64_t j = 0; j < target.columns; ++j) values[j] *= scale[j];
    if (bias)
      for (std::int64_t j = 0; j < target.columns; ++j) values[j] += bias[j];
    if (residuals)
      for (std::int64_t j = 0; j < target.columns; ++j)
        values[j] += stored_value(residuals[at + j], epilogue.residual_values);
    if (relu)
      for (std::int64_t j = 0; j < block_columns; ++j) values[j] = Relu{}(values[j]);
    for (std::int64_t j = 0; j < target.columns; ++j)
      results[at + j] = rounded<T>(values[j], inverse_scale, zero);
  }
}

void finish(MatrixIsa isa, const BlockEpilogue& epilogue, const void* sums, const BlockTarget& target) {
  if (isa == MatrixIsa::avx512 || isa == MatrixIsa::amx) return finish_block_x86(epilogue, sums, target);
  if (isa == MatrixIsa::neon && finish_block_arm(epilogue, sums, target)) return;
  on_dtype(ResultTypes{}, epilogue.dtype, "conv2d", [&]<class T>() {
    with_simd([&]<std::size_t>() __attribute__((always_inline)) {
      for (const BlockRun& run : target.runs)
        if (epilogue.type == MatrixType::bf16)
          finish_run<float, T>(epilogue, static_cast<const float*>(sums), target, run);
        else
          finish_run<std::int32_t, T>(epilogue, static_cast<const std::int32_t*>(sums), target, run);
    });
  });
}

}  // namespace

void finish_block(MatrixIsa isa, const BlockEpilogue& epilogue, void* sums, const BlockTarget& target) {
  if (!needs_argument(epilogue.activation)) return finish(isa, epilogue, sums, target);
  expect(!epilogue.residual);
  BlockEpilogue arguments = epilogue;
  arguments.dtype = DType::f32;
  arguments.activation = FusedActivation::none;
  auto* const values = static_cast<float*>(sums);
  for (const BlockRun& run : target.runs) {
    const BlockRun in_place{run.row, run.count, run.row * block_columns - target.first_column};
    BlockTarget own = target;
    own.result = static_cast<std::byte*>(sums);
    own.row_stride = block_columns;
    own.runs = {&in_place, 1};
    finish(isa, arguments, sums, own);
    with_simd([&]<std::size_t>() __attribute__((always_inline)) {
      activate_row(epilogue.activation, values + run.row * block_columns, run.count * block_columns);
    });
  }
  finish(isa, {.dtype = epilogue.dtype, .result = epilogue.result}, sums, target);
}

}  // namespace tandem::detail
