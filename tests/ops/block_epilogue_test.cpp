// What follows a block of sums, against the formula in f64, with the instructions of this CPU and without.
#include "tandem/ops/block_epilogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tandem/ops/block_product.h"
#include "tests/ops/op_test.h"

namespace tandem::detail {
namespace {

// Rows 2, 6 and 27 to 31 are not results. Runs of odd and even lengths, some of which are neighbors.
const std::vector<BlockRun> runs{{0, 1, 0}, {1, 1, 90}, {3, 3, 300}, {7, 8, 600}, {15, 12, 1200}};
constexpr std::int64_t row_stride = 45, result_size = 2000, first_column = 7;
constexpr Quantization result_values{.scale = 0.4f, .zero = 70}, residual_values{.scale = 0.3f, .zero = 128};

struct Case {
  MatrixIsa isa;
  MatrixType type;
  DType dtype;
  FusedActivation activation;
  std::int64_t columns;
  bool has_residual, has_scale, is_bounded;
  float magnitude = 100;  // of the sums

  std::string name() const {
    return fmt::format("{}, {} sums, {}, activation {}, {} columns, residual {}, scale {}, bounded {}, {}",
                       name_of(isa), type == MatrixType::bf16 ? "f32" : "s32", name_of(dtype),
                       static_cast<int>(activation), columns, has_residual, has_scale, is_bounded, magnitude);
  }
};

double activated(FusedActivation activation, double value) {
  if (activation == FusedActivation::relu) return std::max(value, 0.0);
  return activation == FusedActivation::silu ? value / (1 + std::exp(-value)) : value;
}

double value_of(double stored, Quantization values) {
  return static_cast<double>(values.scale) * (stored - static_cast<double>(values.zero));
}

void check(const Case& one) {
  SCOPED_TRACE(one.name());
  const bool is_u8 = one.dtype == DType::u8;
  const Tensor scale = random_tensor({64}, DType::f32, cpu_device, 1, 0.5, 1.5),
               bias = random_tensor({64}, DType::f32, cpu_device, 2, -20, 20),
               residual =
                   random_tensor({result_size}, one.dtype, cpu_device, 3, is_u8 ? 0 : -50, is_u8 ? 256 : 50);
  const Tensor all =
      random_tensor({block_rows * block_columns}, DType::f32, cpu_device, 4, -one.magnitude, one.magnitude);
  alignas(64) float sums[block_rows * block_columns];
  std::vector<double> exact_sums;
  for (std::int64_t i = 0; i < block_rows * block_columns; ++i) {
    const float sum =
        one.type == MatrixType::int8 ? std::nearbyint(all.data<float>()[i]) : all.data<float>()[i];
    exact_sums.push_back(static_cast<double>(sum));
    const auto integer = static_cast<std::int32_t>(sum);
    std::memcpy(sums + i, one.type == MatrixType::int8 ? static_cast<const void*>(&integer) : &sum, 4);
  }
  Tensor y = Tensor::empty({result_size}, one.dtype);
  std::memset(y.bytes(), 77, result_size * size_of(one.dtype));
  const double untouched = values_of(y)[0];
  finish_block(one.isa,
               {.type = one.type,
                .dtype = one.dtype,
                .scale = one.has_scale ? scale.data<float>() : nullptr,
                .bias = bias.data<float>(),
                .residual = one.has_residual ? residual.bytes() : nullptr,
                .activation = one.activation,
                .result = is_u8 ? result_values : Quantization{},
                .residual_values = is_u8 ? residual_values : Quantization{},
                .is_bounded = one.is_bounded},
               sums,
               {.result = y.bytes(),
                .row_stride = row_stride,
                .runs = runs,
                .first_column = first_column,
                .columns = one.columns});

  const std::vector<double> added = values_of(residual), actual = values_of(y);
  std::vector<double> expected(result_size, untouched);
  for (const BlockRun& run : runs)
    for (std::int64_t r = 0; r < run.count; ++r)
      for (std::int64_t j = 0; j < one.columns; ++j) {
        const std::int64_t at = run.offset + r * row_stride + first_column + j;
        const double factor = one.has_scale ? static_cast<double>(scale.data<float>()[first_column + j]) : 1;
        double value = exact_sums[static_cast<std::size_t>((run.row + r) * block_columns + j)] * factor +
                       static_cast<double>(bias.data<float>()[first_column + j]);
        const double stored = added[static_cast<std::size_t>(at)];
        if (one.has_residual) value += is_u8 ? value_of(stored, residual_values) : stored;
        value = activated(one.activation, value);
        if (is_u8)
          value = std::clamp(
              value / static_cast<double>(result_values.scale) + static_cast<double>(result_values.zero), 0.0,
              255.0);
        expected[static_cast<std::size_t>(at)] = value;
      }
  const double relative = one.dtype == DType::bf16 ? 1.0 / 256 : 1e-6, absolute = is_u8 ? 0.5 + 1e-3 : 1e-4;
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i],
                expected[i] == untouched ? 0 : absolute + relative * std::abs(expected[i]))
        << "element " << i;
}

// Calls f for every instruction set, residual, activation and number of columns.
template <class F>
void for_each_case(MatrixType type, DType dtype, const F& f) {
  for (const MatrixIsa isa : available_matrix_isas(type))
    for (const std::int64_t columns : {32, 27, 16, 5})
      for (const bool has_residual : {false, true})
        for (const FusedActivation activation :
             {FusedActivation::none, FusedActivation::relu, FusedActivation::silu})
          if (activation != FusedActivation::silu || (!has_residual && dtype != DType::u8))
            f(Case{.isa = isa,
                   .type = type,
                   .dtype = dtype,
                   .activation = activation,
                   .columns = columns,
                   .has_residual = has_residual,
                   .has_scale = type == MatrixType::int8,
                   .is_bounded = true});
}

TEST(BlockEpilogue, SumsInF32_AgreeWithTheFormula) {
  for (const DType dtype : {DType::bf16, DType::f32})
    for_each_case(MatrixType::bf16, dtype, [](const Case& one) { check(one); });
}

TEST(BlockEpilogue, SumsInS32_AgreeWithTheFormula) {
  for (const DType dtype : {DType::bf16, DType::f32, DType::u8})
    for_each_case(MatrixType::int8, dtype, [](Case one) {
      check(one);
      one.has_scale = false;
      check(one);
    });
}

TEST(BlockEpilogue, ResultsBeyondIntegers_AreClamped) {
  for_each_case(MatrixType::int8, DType::u8, [](Case one) {
    one.is_bounded = false;
    one.magnitude = 2e9f;  // more than 2³¹ steps
    check(one);
  });
}

}  // namespace
}  // namespace tandem::detail
