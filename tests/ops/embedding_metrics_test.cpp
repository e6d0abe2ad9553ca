#include "tandem/ops/embedding_metrics.h"

#include "tests/ops/golden_op.h"

namespace tandem {
namespace {

class EmbeddingMetricsTest : public OpTest {};

TEST_P(EmbeddingMetricsTest, Alignment_MatchesPyTorch) {
  for (const golden::Case& one : golden_cases("alignment", "contrastive")) {
    SCOPED_TRACE(one.name);
    const Tensor value = alignment(golden_tensor(one, "x", dtype(), device()), one.params.at("power"));
    EXPECT_EQ(value.shape(), Shape());
    expect_values(value, one.array("expected").values<double>(), tolerance());
  }
}

TEST_P(EmbeddingMetricsTest, Uniformity_MatchesPyTorch) {
  for (const golden::Case& one : golden_cases("uniformity", "contrastive")) {
    SCOPED_TRACE(one.name);
    const Tensor value = uniformity(golden_tensor(one, "x", dtype(), device()), one.params.at("scale"));
    EXPECT_EQ(value.shape(), Shape());
    expect_values(value, one.array("expected").values<double>(), tolerance());
  }
}

TEST_P(EmbeddingMetricsTest, EqualAndOppositeRows_HaveKnownValues) {
  const Tensor equal = tensor_of({1, 2, 2, 4, 1, 2, 2, 4}, {4, 2}, dtype(), device());
  expect_values(alignment(equal), {0}, tolerance());
  expect_values(uniformity(equal), {0}, tolerance());
  const Tensor opposite = tensor_of({3, 4, -3, -4}, {2, 2}, dtype(), device());
  expect_values(alignment(opposite), {4}, tolerance());
  expect_values(alignment(opposite, 1), {2}, tolerance());
  expect_values(uniformity(opposite), {-8}, tolerance());
  expect_values(uniformity(opposite, 100), {-400}, tolerance());
}

INSTANTIATE_TEST_SUITE_P(Devices, EmbeddingMetricsTest,
                         testing::ValuesIn(op_cases({DType::f32, DType::f64, DType::bf16})), op_case_name);

TEST(EmbeddingMetrics, InvalidInput_IsAnError) {
  const auto rows = [](std::int64_t count, DType dtype = DType::f32) {
    return random_tensor({count, 2}, dtype, cpu_device, 1);
  };
  EXPECT_EQ(error_text([&] { alignment(rows(3)); }),
            "[alignment] expected embeddings (2n, d) with n above 0, got [3, 2]");
  EXPECT_EQ(error_text([&] { alignment(rows(0)); }),
            "[alignment] expected embeddings (2n, d) with n above 0, got [0, 2]");
  EXPECT_EQ(error_text([&] { alignment(rows(2), 0); }), "[alignment] expected a finite power above 0, got 0");
  EXPECT_EQ(error_text([&] { alignment(rows(2, DType::i64)); }),
            "[alignment] expected embeddings of a floating dtype, got i64");
  EXPECT_EQ(error_text([&] { uniformity(rows(1)); }),
            "[uniformity] expected embeddings (n, d) of at least 2 rows, got [1, 2]");
  EXPECT_EQ(error_text([&] { uniformity(rows(2), -1); }),
            "[uniformity] expected a finite scale above 0, got -1");
}

}  // namespace
}  // namespace tandem
