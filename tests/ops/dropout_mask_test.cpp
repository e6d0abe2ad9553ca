#include "tandem/ops/dropout_mask.h"

#include "tandem/core/parallel.h"
#include "tandem/ops/fill.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

class DropoutMaskTest : public OpTest {};

// The random numbers depend only on the element, not on dtype, shape or device.
TEST_P(DropoutMaskTest, AnyDtypeAndShape_DropsTheSameElements) {
  Tensor step = full({}, 7, DType::i64, device());
  const auto values =
      values_of(dropout_mask({41, 5}, step, {.probability = 0.25, .seed = 3, .dtype = dtype()}));
  EXPECT_EQ(step.item<std::int64_t>(), 8);
  Tensor cpu_step = full({}, 7, DType::i64);
  const auto expected =
      values_of(dropout_mask({206}, cpu_step, {.probability = 0.25, .seed = 3, .dtype = DType::f64}));
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i] == 0, expected[i] == 0) << "element " << i;
    if (values[i] != 0) {
      ASSERT_NEAR(values[i], 4.0 / 3, tolerance());
    }
  }
}

TEST_P(DropoutMaskTest, EmptyMask_IncrementsStep) {
  Tensor step = zeros({}, DType::i64, device());
  EXPECT_EQ(dropout_mask({0, 3}, step, {.dtype = dtype()}).shape(), (Shape{0, 3}));
  EXPECT_EQ(step.item<std::int64_t>(), 1);
}

INSTANTIATE_TEST_SUITE_P(Devices, DropoutMaskTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

TEST(DropoutMask, AnyThreadCount_GivesSameMask) {
  const auto mask = [](int threads) {
    const ThreadLimit limit(threads);
    Tensor step = zeros({}, DType::i64);
    return values_of(dropout_mask({30001}, step, {.probability = 0.4, .seed = 9}));
  };
  EXPECT_EQ(mask(1), mask(2));
}

TEST(DropoutMask, BadInput_ErrorNamesValues) {
  Tensor step = zeros({}, DType::i64), two_floats = zeros({2});
  EXPECT_EQ(error_text([&] { dropout_mask({1}, step, {.probability = 1}); }),
            "[dropout] expected a probability of 0 or more and less than 1, got 1");
  EXPECT_EQ(error_text([&] { dropout_mask({1}, two_floats, {}); }),
            "[dropout] expected a step counter of one i64, got [2] of f32");
  EXPECT_EQ(error_text([&] { dropout_mask({1}, step, {.dtype = DType::i32}); }),
            "[dropout] expected a floating dtype, got i32");
  EXPECT_EQ(error_text([&] {
              dropout_mask({1 << 20, 1 << 20}, step, {});
            }),
            "[dropout] expected at most 2^34 elements, got shape [1048576, 1048576]");
}

}  // namespace
}  // namespace tandem
