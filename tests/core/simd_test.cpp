#include "tandem/core/simd.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/core/error_text.h"

namespace tandem {
namespace {

TEST(Simd, EveryLevelHasAName) {
  EXPECT_EQ(name_of(SimdLevel::avx512), "AVX-512");
  EXPECT_EQ(name_of(SimdLevel::avx2), "AVX2");
#if defined(__aarch64__)
  EXPECT_EQ(name_of(SimdLevel::baseline), "NEON");
  EXPECT_EQ(simd_level(), SimdLevel::baseline);
#elif defined(__x86_64__)
  EXPECT_EQ(name_of(SimdLevel::baseline), "SSE2");
#endif
}

TEST(Simd, WantedLevel_MayBeLower) {
  EXPECT_EQ(choose_simd_level("", SimdLevel::avx2), SimdLevel::avx2);
  EXPECT_EQ(choose_simd_level("avx2", SimdLevel::avx512), SimdLevel::avx2);
  EXPECT_EQ(choose_simd_level("avx512", SimdLevel::avx512), SimdLevel::avx512);
#if defined(__aarch64__)
  EXPECT_EQ(choose_simd_level("neon", SimdLevel::baseline), SimdLevel::baseline);
#elif defined(__x86_64__)
  EXPECT_EQ(choose_simd_level("sse2", SimdLevel::avx512), SimdLevel::baseline);
  EXPECT_EQ(error_text([] { choose_simd_level("avx512", SimdLevel::avx2); }),
            "TANDEM_SIMD: expected one of sse2, avx2, which this CPU has, got 'avx512'");
#endif
  error_text([] { choose_simd_level("fast", SimdLevel::avx512); });
}

TEST(Simd, WithSimd_PassesTheWidthOfTheLevel) {
  std::size_t width = 0;
  with_simd([&]<std::size_t bytes>() { width = bytes; });
  const SimdLevel level = simd_level();
  EXPECT_EQ(width, level == SimdLevel::avx512 ? 64u : level == SimdLevel::avx2 ? 32u : 16u);
}

TEST(Simd, Vector_OperatorsAreElementWise) {
  std::vector<float> a(64), b(64), sum(64);
  for (int i = 0; i < 64; ++i) {
    a[i] = static_cast<float>(i);
    b[i] = static_cast<float>(3 * i + 1);
  }
  with_simd([&]<std::size_t bytes>() __attribute__((always_inline)) {
    using Lanes = Vector<float, bytes>;
    static_assert(sizeof(Lanes) == bytes && alignof(Lanes) == alignof(float));
    constexpr std::size_t lanes = bytes / sizeof(float);
    for (std::size_t i = 0; i < 64; i += lanes)
      *reinterpret_cast<Lanes*>(&sum[i]) =
          *reinterpret_cast<const Lanes*>(&a[i]) + *reinterpret_cast<const Lanes*>(&b[i]);
  });
  for (int i = 0; i < 64; ++i) EXPECT_EQ(sum[i], static_cast<float>(4 * i + 1));
}

}  // namespace
}  // namespace tandem
