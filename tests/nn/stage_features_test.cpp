// Features of several stages, and the momentum of batch norms for calibration.
#include "tandem/nn/batch_norm.h"
#include "tandem/nn/cnn.h"
#include "tandem/nn/lenet.h"
#include "tandem/nn/resnet.h"
#include "tandem/tensor/tape.h"
#include "tests/nn/resnet_case.h"

namespace tandem {
namespace {

class StageFeatures : public testing::TestWithParam<Device> {
 protected:
  // Without gradients, in evaluation mode.
  std::vector<double> stages(BackboneModel& model, std::int64_t channels, std::int64_t side = 33) {
    const NoGrad no_grad;
    model.to(GetParam());
    model.eval();
    const Tensor x = random_tensor({2, side, side, channels}, DType::f32, GetParam(), 1);
    const Tensor features = model.features(x), joined = model.stage_features(x);
    EXPECT_EQ(joined.dtype(), DType::f32);
    // The last stage is what the head gets.
    const Tensor last = joined.slice(1, joined.size(1) - features.size(1), joined.size(1));
    EXPECT_EQ(values_of(last), values_of(features));
    width_ = joined.size(1);
    return values_of(joined);
  }
  // The number of first features, of the first image, that are the same.
  static std::size_t common(const std::vector<double>& a, const std::vector<double>& b) {
    return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  }
  static void double_weights(Module& model, const std::string& layer) {
    const NoGrad no_grad;
    for (auto& p : model.parameters())
      if (p.name.starts_with(layer)) p.tensor *= 2;
    model.invalidate_caches();
  }

  std::int64_t width_ = 0;
};

TEST_P(StageFeatures, ResNet_JoinsStages2To4) {
  ResNet model({.classes = 3});
  const auto before = stages(model, 3);
  EXPECT_EQ(width_, 128 + 256 + 512);
  double_weights(model, "layer4.");
  const auto fourth = stages(model, 3);
  EXPECT_EQ(common(before, fourth), 128U + 256U);
  double_weights(model, "layer3.");
  const auto third = stages(model, 3);
  EXPECT_EQ(common(fourth, third), 128U);
  double_weights(model, "layer2.");
  EXPECT_EQ(common(third, stages(model, 3)), 0U);
  ResNet deep({.depth = 50, .classes = 3});
  stages(deep, 3);
  EXPECT_EQ(width_, 512 + 1024 + 2048);
}

TEST_P(StageFeatures, Cnn_JoinsAllThree_LeNetHasOne) {
  Cnn cnn({.classes = 3, .width = 4});
  const auto before = stages(cnn, 1, 12);
  EXPECT_EQ(width_, 4 + 8 + 16);
  double_weights(cnn, "conv5.");
  EXPECT_GE(common(before, stages(cnn, 1, 12)), 4U + 8U);
  LeNet lenet;
  stages(lenet, 1, 28);
  EXPECT_EQ(width_, lenet.feature_count());
}

INSTANTIATE_TEST_SUITE_P(Devices, StageFeatures, testing::ValuesIn(test_devices()), device_name);

TEST(BatchNormMomentum, OneByK_GivesTheMeanOverBatches) {
  BatchNorm norm(1);
  const NoGrad no_grad;
  // Batches with means 2 and 8 and unbiased variances 2 and 8.
  const Tensor first = Tensor::from(std::vector<float>{1, 3}, {2, 1});
  const Tensor second = Tensor::from(std::vector<float>{6, 10}, {2, 1});
  {
    const BatchNormMomentum momentum(1);
    norm(first);
    EXPECT_EQ(values_of(norm.running_mean()), (std::vector<double>{2}));
  }
  {
    const BatchNormMomentum momentum(0.5);
    norm(second);
  }
  EXPECT_EQ(values_of(norm.running_mean()), (std::vector<double>{5}));
  EXPECT_EQ(values_of(norm.running_variance()), (std::vector<double>{5}));
  norm(second);  // with its own momentum again
  EXPECT_NEAR(values_of(norm.running_mean())[0], 0.9 * 5 + 0.1 * 8, 1e-6);
  EXPECT_EQ(error_text([] { BatchNormMomentum(0); }),
            "[batch_norm] expected a momentum above 0 and at most 1, got 0");
}

}  // namespace
}  // namespace tandem
