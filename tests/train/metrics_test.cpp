#include "tandem/train/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tandem/core/error.h"

namespace tandem {
namespace {

const std::vector<std::int32_t> labels{0, 0, 0, 1, 1, 2};
const std::vector<std::int32_t> predictions{0, 1, 0, 1, 2, 0};

TEST(Metrics, ConfusionCountsTruthByPrediction) {
  EXPECT_EQ(confusion_matrix(labels, predictions, 3), (std::vector<std::int64_t>{2, 1, 0, 0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(confusion_matrix({}, {}, 2), (std::vector<std::int64_t>(4)));
  EXPECT_THROW((void)confusion_matrix(labels, predictions, 2), InternalError);
  EXPECT_THROW((void)confusion_matrix(std::vector<std::int32_t>{-1}, std::vector<std::int32_t>{0}, 2),
               InternalError);
}

TEST(Metrics, Accuracy_FromPredictionsAndFromConfusion) {
  EXPECT_DOUBLE_EQ(accuracy(labels, predictions), 0.5);
  EXPECT_DOUBLE_EQ(accuracy(confusion_matrix(labels, predictions, 3)), 0.5);
  EXPECT_TRUE(std::isnan(accuracy(std::vector<std::int32_t>{}, std::vector<std::int32_t>{})));
  EXPECT_TRUE(std::isnan(accuracy(std::vector<std::int64_t>(9))));
  EXPECT_THROW((void)accuracy(std::vector<std::int64_t>(8)), InternalError);
}

TEST(Metrics, PrecisionAndRecallByClass) {
  const auto metrics = class_metrics(confusion_matrix(labels, predictions, 4));
  ASSERT_EQ(metrics.size(), 4u);
  EXPECT_EQ(metrics[0].images, 3);
  EXPECT_EQ(metrics[0].predicted, 3);
  EXPECT_EQ(metrics[0].correct, 2);
  EXPECT_DOUBLE_EQ(metrics[0].precision, 2.0 / 3);
  EXPECT_DOUBLE_EQ(metrics[0].recall, 2.0 / 3);
  EXPECT_DOUBLE_EQ(metrics[1].precision, 0.5);
  EXPECT_DOUBLE_EQ(metrics[2].precision, 0);
  EXPECT_DOUBLE_EQ(metrics[2].recall, 0);
  EXPECT_TRUE(std::isnan(metrics[3].precision));
  EXPECT_TRUE(std::isnan(metrics[3].recall));
}

TEST(Metrics, TopK_CountsLabelsAmongTheLargest) {
  const std::vector<float> logits{3,  1,  2,   // 2 is second
                                  -1, -2, -3,  // 2 is third
                                  0,  5,  4};  // 1 is first
  const std::vector<std::int32_t> truth{2, 2, 1};
  EXPECT_DOUBLE_EQ(top_k_accuracy(logits, truth, 1), 1.0 / 3);
  EXPECT_DOUBLE_EQ(top_k_accuracy(logits, truth, 2), 2.0 / 3);
  EXPECT_DOUBLE_EQ(top_k_accuracy(logits, truth, 3), 1);
  EXPECT_DOUBLE_EQ(top_k_accuracy(logits, truth, 100), 1);
  EXPECT_TRUE(std::isnan(top_k_accuracy({}, {}, 1)));
}

TEST(Metrics, TopK_TiesGoToLowerIndex) {
  const std::vector<float> logits{7, 7, 7};
  for (std::int32_t label = 0; label < 3; ++label)
    for (int k = 1; k <= 3; ++k)
      EXPECT_EQ(top_k_accuracy(logits, std::vector{label}, k), label < k ? 1 : 0) << label << " " << k;
}

TEST(Metrics, TopK_NaNIsNeverCorrect) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> logits{nan, 0, 1};
  EXPECT_EQ(top_k_accuracy(logits, std::vector<std::int32_t>{0}, 3), 0);
  EXPECT_EQ(top_k_accuracy(logits, std::vector<std::int32_t>{2}, 1), 1);
}

}  // namespace
}  // namespace tandem
