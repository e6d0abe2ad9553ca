// Both schedules of the kernels for pairs of rows (aarch64 with bf16 and i8mm) against the definition, with
// factors that end where memory ends: neither may read more.
#include "tandem/ops/pair_product.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace tandem::detail {
namespace {

// Bytes before a page that cannot be read.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::int64_t size)
      : page_(sysconf(_SC_PAGESIZE)), mapped_((size + page_ - 1) / page_ * page_ + page_) {
    memory_ = static_cast<std::byte*>(mmap(nullptr, static_cast<std::size_t>(mapped_), PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory_ + mapped_ - page_, static_cast<std::size_t>(page_), PROT_NONE);
    data_ = memory_ + mapped_ - page_ - size;
  }
  ~GuardedBytes() { munmap(memory_, static_cast<std::size_t>(mapped_)); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::int64_t page_;
  std::int64_t mapped_;
  std::byte* memory_ = nullptr;
  std::byte* data_ = nullptr;
};

constexpr std::int64_t rows = 2 * block_pairs;

// One row's element k and one column's element k of either type.
struct Factors {
  MatrixType type;
  std::int64_t inner;
  std::vector<float> left, right;  // [row][k], [column][k]

  Factors(MatrixType of, std::int64_t steps) : type(of), inner(steps * step_elements(of)) {
    std::mt19937 random(static_cast<unsigned>(steps));
    const bool is_bf16 = type == MatrixType::bf16;
    for (std::int64_t i = 0; i < rows * inner; ++i)
      left.push_back(value(random, is_bf16 ? -128 : 0, is_bf16 ? 127 : 255));
    for (std::int64_t i = 0; i < block_columns * inner; ++i) right.push_back(value(random, -128, 127));
  }
  // Small integers: exact in bf16, and their sums in f32.
  static float value(std::mt19937& random, int min, int max) {
    return static_cast<float>(std::uniform_int_distribution<int>(min, max)(random));
  }
  void store(std::byte* to, float value) const {
    if (type == MatrixType::bf16) {
      const auto bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
      std::memcpy(to, &bits, 2);
    } else {
      *to = static_cast<std::byte>(static_cast<int>(value));
    }
  }
  double sum(std::int64_t row, std::int64_t column) const {
    double sum = 0;
    for (std::int64_t k = 0; k < inner; ++k)
      sum += left[static_cast<std::size_t>(row * inner + k)] *
             right[static_cast<std::size_t>(column * inner + k)];
    return sum;
  }
};

class PairProductTest : public testing::TestWithParam<std::tuple<MatrixType, LoadSchedule>> {};

TEST_P(PairProductTest, AnyNumberOfSteps_EqualsTheDefinition) {
  const auto [type, schedule] = GetParam();
  PairKernel kernel = nullptr;
  for (const MatrixIsa isa : available_matrix_isas(type))
    if (const PairKernel found = pair_kernel(type, isa, schedule)) kernel = found;
  if (!kernel) GTEST_SKIP() << "this CPU has no such instructions";
  for (const std::int64_t steps : {1, 2, 3, 24, 25, 49}) {
    const Factors factors(type, steps);
    const std::int64_t size = element_size(type), row_bytes = steps * step_bytes;
    const GuardedBytes pairs(rows * row_bytes), panels(2 * steps * panel_step_bytes),
        sums(rows * block_columns * 4);
    for (std::int64_t row = 0; row < rows; ++row)  // eight bytes of a row, then eight of the other
      for (std::int64_t k = 0; k < factors.inner; ++k) {
        const std::int64_t at = k * size;
        factors.store(pairs.data() + row / 2 * 2 * row_bytes + at / 8 * 16 + row % 2 * 8 + at % 8,
                      factors.left[static_cast<std::size_t>(row * factors.inner + k)]);
      }
    std::vector<std::byte> columns(static_cast<std::size_t>(block_columns * row_bytes));
    for (std::int64_t i = 0; i < block_columns * factors.inner; ++i)
      factors.store(columns.data() + i * size, factors.right[static_cast<std::size_t>(i)]);
    pack_panels({type, block_columns, factors.inner}, panels.data(),
                {columns.data(), row_bytes, row_bytes, factors.inner});
    std::vector<std::int64_t> offsets, first;
    for (std::int64_t s = 0; s < steps; ++s) offsets.push_back(s * step_bytes);
    for (std::int64_t p = 0; p < block_pairs; ++p) first.push_back(p * 2 * row_bytes);
    kernel({.rows = pairs.data(),
            .pairs = first.data(),
            .offsets = offsets.data(),
            .steps = steps,
            .panels = panels.data(),
            .sums = sums.data()});
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < block_columns; ++column) {
        const std::byte* const at = sums.data() + (row * block_columns + column) * 4;
        float real = 0;
        std::int32_t integer = 0;
        std::memcpy(&real, at, 4);
        std::memcpy(&integer, at, 4);
        ASSERT_EQ(type == MatrixType::bf16 ? static_cast<double>(real) : integer, factors.sum(row, column))
            << steps << " steps, row " << row << ", column " << column;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, PairProductTest,
                         testing::Combine(testing::Values(MatrixType::bf16, MatrixType::int8),
                                          testing::Values(LoadSchedule::adjacent, LoadSchedule::early)),
                         [](const auto& kernel) {
                           return std::string(std::get<0>(kernel.param) == MatrixType::bf16 ? "bf16"
                                                                                            : "int8") +
                                  (std::get<1>(kernel.param) == LoadSchedule::early ? "_early" : "_adjacent");
                         });

}  // namespace
}  // namespace tandem::detail
