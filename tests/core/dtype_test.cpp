#include "tandem/core/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <concepts>
#include <limits>

#include "tandem/core/on_dtype.h"
#include "tests/core/error_text.h"

namespace tandem {
namespace {

constexpr DType all_dtypes[] = {DType::f32, DType::f64, DType::bf16, DType::u8, DType::i32, DType::i64};

TEST(DType, ParseDtype_InvertsNameOf) {
  for (DType dtype : all_dtypes) EXPECT_EQ(parse_dtype(name_of(dtype)), dtype);
  EXPECT_EQ(error_text([] { parse_dtype("f16"); }),
            "expected one of the dtypes f32, f64, bf16, u8, i32, i64, got 'f16'");
}

TEST(DType, SizeOf_MatchesTheCppType) {
  for (DType dtype : all_dtypes)
    on_dtype(AllTypes{}, dtype, "test", [&]<class T>() {
      EXPECT_EQ(size_of(dtype), sizeof(T));
      EXPECT_EQ(dtype_of<T>, dtype);
      EXPECT_EQ(is_floating(dtype), !std::integral<T>);
    });
}

TEST(DType, OnDtype_UnsupportedDtype_ErrorListsTheSupported) {
  EXPECT_EQ(error_text([] { on_dtype(TypeList<float, double>{}, DType::u8, "relu", []<class T>() {}); }),
            "[relu] expected dtype f32 or f64, got u8");
  EXPECT_EQ(on_dtype(AllTypes{}, DType::i32, "test", []<class T>() { return sizeof(T); }), 4u);
}

float through_bf16(float value) {
  return static_cast<float>(BFloat16(value));
}

TEST(BFloat16, RoundTripIsExactForEightSignificantBits) {
  for (float value : {0.0f, 1.0f, -2.5f, 255.0f, 0x1p-126f, -0x1p127f, 0x1p-133f})
    EXPECT_EQ(through_bf16(value), value);
  EXPECT_TRUE(std::signbit(through_bf16(-0.0f)));
}

TEST(BFloat16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(through_bf16(1 + 0x1p-8f), 1.0f);                        // a tie: down to even
  EXPECT_EQ(through_bf16(1 + 3 * 0x1p-8f), 1 + 4 * 0x1p-8f);         // a tie: up to even
  EXPECT_EQ(through_bf16(1 + 0x1p-8f + 0x1p-20f), 1 + 2 * 0x1p-8f);  // just above the tie
  EXPECT_EQ(through_bf16(1 + 0x1p-8f - 0x1p-20f), 1.0f);
  EXPECT_EQ(through_bf16(-1 - 3 * 0x1p-8f), -1 - 4 * 0x1p-8f);
  EXPECT_EQ(through_bf16(2 - 0x1p-20f), 2.0f);  // carries into the exponent
}

TEST(BFloat16, KeepsInfinityAndNaN) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(through_bf16(inf), inf);
  EXPECT_EQ(through_bf16(-inf), -inf);
  EXPECT_EQ(through_bf16(std::numeric_limits<float>::max()), inf);  // rounds up past the largest bf16
  EXPECT_TRUE(std::isnan(through_bf16(std::numeric_limits<float>::quiet_NaN())));
  // A NaN whose payload is only in the lower 16 bits must become neither infinity nor zero.
  EXPECT_TRUE(std::isnan(through_bf16(std::bit_cast<float>(0x7f800001u))));
  EXPECT_TRUE(std::isnan(through_bf16(std::bit_cast<float>(0xffffffffu))));
}

}  // namespace
}  // namespace tandem
