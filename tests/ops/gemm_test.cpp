#include "tandem/ops/gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"

namespace tandem::detail {
namespace {

template <class T>
std::vector<T> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = uniform(generator);
  return values;
}

// A matrix as a product reads it: stored as it is or as its transpose, with unused elements between the rows.
template <class T>
struct Stored {
  std::int64_t rows, columns;
  bool transposed;
  std::int64_t leading_dimension;
  std::vector<T> values;

  Stored(std::int64_t row_count, std::int64_t column_count, bool is_transposed, unsigned seed)
      : rows(row_count),
        columns(column_count),
        transposed(is_transposed),
        leading_dimension((transposed ? rows : columns) + 3),
        values(random_values<T>((transposed ? columns : rows) * leading_dimension, seed)) {}

  std::size_t place(std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(transposed ? column * leading_dimension + row
                                               : row * leading_dimension + column);
  }
  T at(std::int64_t row, std::int64_t column) const { return values[place(row, column)]; }
  GemmOperand<T> operand(std::int64_t first_row = 0) const {
    return {values.data() + place(first_row, 0), leading_dimension, transposed};
  }
};

template <class T>
std::vector<T> product(const Stored<T>& a, const Stored<T>& b, std::int64_t first = 0,
                       std::int64_t rows = -1) {
  if (rows < 0) rows = a.rows;
  std::vector<T> c(static_cast<std::size_t>(rows * b.columns), T{77});
  gemm<T>({.size = {rows, b.columns, a.columns},
           .a = a.operand(first),
           .b = b.operand(),
           .c = c.data(),
           .leading_dimension_c = b.columns});
  return c;
}

// The definition of gemm.h, with one multiply-add at a time.
template <class T>
T element(const Stored<T>& a, const Stored<T>& b, std::int64_t row, std::int64_t column) {
  T total = 0;
  for (std::int64_t first = 0; first < a.columns; first += gemm_inner_block<T>) {
    T sum = 0;
    for (std::int64_t k = first; k < std::min(first + gemm_inner_block<T>, a.columns); ++k)
      sum = std::fma(a.at(row, k), b.at(k, column), sum);
    total = first == 0 ? sum : total + sum;
  }
  return total;
}

bool has_fma() {
#if defined(__x86_64__)
  return simd_level() != SimdLevel::baseline;
#else
  return true;
#endif
}

constexpr std::array<std::int64_t, 3> sizes[] = {{1, 1, 1},     {1, 37, 300},  {37, 1, 300},  {8, 32, 256},
                                                 {9, 33, 257},  {16, 10, 200}, {130, 70, 20}, {100, 200, 513},
                                                 {97, 530, 64}, {3, 5, 1000}};

template <class T>
void expect_definition() {
  for (const auto& [m, n, k] : sizes)
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        SCOPED_TRACE(testing::Message() << m << "x" << n << "x" << k << transpose_a << transpose_b);
        const Stored<T> a(m, k, transpose_a, 1), b(k, n, transpose_b, 2);
        const std::vector<T> c = product(a, b);
        std::int64_t wrong = 0;
        for (std::int64_t row = 0; row < m; ++row)
          for (std::int64_t column = 0; column < n; ++column) {
            const T value = c[static_cast<std::size_t>(row * n + column)],
                    expected = element(a, b, row, column);
            const T limit = has_fma() ? 0 : static_cast<T>(k) * std::numeric_limits<T>::epsilon();
            wrong += !(std::abs(value - expected) <= limit);
          }
        EXPECT_EQ(wrong, 0);
      }
}

TEST(Gemm, EveryElement_HasTheBitsOfTheDefinition) {
  expect_definition<float>();
  expect_definition<double>();
}

TEST(Gemm, Threads_DoNotChangeBits) {
  const Stored<float> a(157, 300, false, 1), b(300, 211, true, 2);
  const std::vector<float> all = product(a, b);
  for (const int threads : {1, 2, 3, 5, 16}) {
    set_thread_count(threads);
    EXPECT_EQ(product(a, b), all) << threads;
  }
  set_thread_count(usable_cpus());
}

// What sharding a batch relies on.
TEST(Gemm, ARow_DoesNotDependOnTheRowsBesideIt) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      const Stored<float> a(32, 784, transpose_a, 1), b(784, 200, transpose_b, 2);
      const std::vector<float> all = product(a, b);
      for (const std::int64_t rows : {1, 2, 4, 8, 16})
        for (std::int64_t first = 0; first < 32; first += rows)
          EXPECT_EQ(product(a, b, first, rows),
                    std::vector<float>(all.begin() + first * 200, all.begin() + (first + rows) * 200));
    }
}

TEST(Gemm, Symmetric_HasTheSameBits) {
  set_thread_count(16);  // many small blocks, which must not write to each other's elements
  for (const std::int64_t rows : {1, 31, 96, 97, 130, 200, 333}) {
    const Stored<double> x(rows, 600, false, 1);
    const auto count = static_cast<std::size_t>(rows * rows);
    std::vector<double> half(count, 77), all(count);
    Gemm<double> product_of_x{.size = {rows, rows, 600},
                              .a = x.operand(),
                              .b = {x.values.data(), x.leading_dimension, true},
                              .c = half.data(),
                              .leading_dimension_c = rows,
                              .symmetric = true};
    gemm(product_of_x);
    product_of_x.c = all.data();
    product_of_x.symmetric = false;
    gemm(product_of_x);
    EXPECT_EQ(half, all) << rows;
  }
  set_thread_count(usable_cpus());
}

}  // namespace
}  // namespace tandem::detail
