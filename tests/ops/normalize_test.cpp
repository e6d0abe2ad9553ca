#include "tandem/ops/normalize.h"

#include "tests/ops/op_test.h"

namespace tandem {
namespace {

class NormalizeTest : public OpTest {};

TEST_P(NormalizeTest, AnyChannelCount_MatchesFormula) {
  PixelNorm norm = imagenet_norm;
  norm.mean[3] = 0.25f;
  norm.stddev[3] = 2;
  for (const std::int64_t channels : {1, 2, 3, 4})
    for (const std::int64_t width : {1, 5, 67}) {
      const Shape shape{2, 3, width, channels};
      std::vector<std::uint8_t> bytes(static_cast<std::size_t>(shape.numel()));
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 37 % 256);
      std::vector<double> expected;
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        const std::size_t c = i % static_cast<std::size_t>(channels);
        expected.push_back((bytes[i] / 255.0 - norm.mean[c]) / norm.stddev[c]);
      }
      const Tensor out = normalize_images(Tensor::from(bytes, shape, device()), norm, dtype());
      EXPECT_EQ(out.shape(), shape);
      expect_values(out, expected, tolerance());
      // A part of a batch, whose first byte may have any address.
      const Tensor second =
          normalize_images(Tensor::from(bytes, shape, device()).slice(0, 1, 2), norm, dtype());
      expect_values(second, {expected.begin() + std::ssize(expected) / 2, expected.end()}, tolerance());
    }
  EXPECT_EQ(normalize_images(Tensor::empty({0, 4, 4, 3}, DType::u8, device()), norm, dtype()).numel(), 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, NormalizeTest, testing::ValuesIn(op_cases({DType::f32, DType::bf16})),
                         op_case_name);

TEST(Normalize, TooManyChannels_ErrorNamesShape) {
  EXPECT_EQ(error_text([] {
              normalize_images(Tensor::empty({2, 3, 3, 5}, DType::u8), {});
            }),
            "[normalize_images] expected u8 (n, height, width, channels of at most 4), got u8 [2, 3, 3, 5]");
}

}  // namespace
}  // namespace tandem
