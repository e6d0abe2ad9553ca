#include "tandem/core/matrix_isa.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(MatrixIsa, WantedIsa_IsOneOfTheAvailable) {
  const std::vector<MatrixIsa> available{MatrixIsa::plain, MatrixIsa::avx512};
  EXPECT_EQ(choose_matrix_isa("", available), MatrixIsa::avx512);
  EXPECT_EQ(choose_matrix_isa("plain", available), MatrixIsa::plain);
  EXPECT_EQ(error_text([&] { choose_matrix_isa("amx", available); }),
            "TANDEM_MATRIX: expected one of plain, avx512, which this CPU has, got 'amx'");
}

TEST(MatrixIsa, PlainCode_IsAlwaysAvailable) {
  for (const MatrixType type : {MatrixType::bf16, MatrixType::int8}) {
    const std::vector<MatrixIsa> available = available_matrix_isas(type);
    ASSERT_FALSE(available.empty());
    EXPECT_EQ(available.front(), MatrixIsa::plain);
    EXPECT_EQ(available, available_matrix_isas(type)) << "the second question has another answer";
  }
}

}  // namespace
}  // namespace tandem
