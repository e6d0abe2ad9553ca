// Perceptrons in bf16 on a GPU: activations and copies of the weights are rounded, the weights themselves and
// all sums are f32. Compared with the same steps in fp32.
#include <gtest/gtest.h>

#include <cmath>

#include "tandem/nn/mlp.h"
#include "tandem/ops/random.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/train/engines/engine.h"

namespace tandem {
namespace {

// Low enough for differences to stay small: with 0.2 the biases of a ReLU network differ by a quarter.
constexpr double learning_rate = 0.02;

struct Trained {
  std::vector<double> losses;               // the mean of every epoch
  std::vector<std::vector<float>> changes;  // of the parameters
  std::string engine;
};

// 5 epochs of 3 whole batches and one of 4 images.
Trained train_small(const std::vector<std::int64_t>& layers, Activation activation,
                    MatmulPrecision precision) {
  const Device device = cuda_device();
  ImageSet images;
  images.images = random_integers({100, 8, layers.front() / 8, 1}, 0, 256,
                                  {.seed = 1, .dtype = DType::u8, .device = device});
  images.labels =
      random_integers({100}, 0, layers.back(), {.seed = 2, .dtype = DType::i32, .device = device});
  images.classes.resize(static_cast<std::size_t>(layers.back()));
  const auto model = make_mlp({.layers = layers, .activation = activation, .seed = 3});
  model->to(device);
  FusedOptimizer optimizer(model->parameters(), {.weight_decay = 1e-3}, learning_rate);
  InMemorySource source(images, {.samples = 100, .batch_size = 32});
  const TrainingTask task{.model = *model,
                          .optimizer = optimizer,
                          .source = source,
                          .schedule = {.epochs = 5},
                          .learning_rate = learning_rate,
                          .label_smoothing = 0.1,
                          .precision = precision};
  const auto engine = make_engine(task);
  Trained trained{.engine = engine->description()};
  for (const NamedTensor& each : model->parameters())
    trained.changes.push_back(each.tensor.detach().to_vector<float>());
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    const StepSums sums = engine->run(epoch, 0, 4);
    EXPECT_EQ(sums.samples, 100);
    trained.losses.push_back(sums.loss / 100);
  }
  engine->store();
  std::size_t parameter = 0;
  for (const NamedTensor& each : model->parameters()) {
    const std::vector<float> now = each.tensor.detach().to_vector<float>();
    std::vector<float>& change = trained.changes[parameter++];
    for (std::size_t i = 0; i < now.size(); ++i) change[i] = now[i] - change[i];
  }
  return trained;
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(a[i] - b[i], 2);
    size += std::pow(b[i], 2);
  }
  return std::sqrt(difference / size);
}

TEST(LayeredPerceptron, Bf16_IsCloseToFp32) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const std::vector<std::vector<std::int64_t>> shapes{
      {64, 48, 40, 10}, {64, 512, 264, 3}, {64, 48, 44, 10}, {64, 256, 64, 40}};
  for (const std::vector<std::int64_t>& layers : shapes)
    for (const Activation activation : {Activation::sigmoid, Activation::tanh, Activation::relu}) {
      SCOPED_TRACE(testing::Message()
                   << layers[1] << " " << layers[2] << " " << layers[3] << " " << name_of(activation));
      const Trained exact = train_small(layers, activation, MatmulPrecision::fp32);
      const Trained rounded = train_small(layers, activation, MatmulPrecision::bf16);
      // Sizes that do not fill packs, and many classes, are computed with f32 in memory.
      EXPECT_EQ(rounded.engine.ends_with("activations in bf16"), layers[2] % 8 == 0 && layers[3] <= 16)
          << rounded.engine;
      for (std::size_t i = 0; i < exact.losses.size(); ++i)
        EXPECT_NEAR(rounded.losses[i], exact.losses[i], 0.002 * exact.losses[i]) << "epoch " << i;
      // Three times what an emulation with rounded values gives for six seeds.
      const double tolerance = activation == Activation::relu ? 0.3 : 0.1;
      for (std::size_t i = 0; i < exact.changes.size(); ++i)
        EXPECT_LT(relative_distance(rounded.changes[i], exact.changes[i]), tolerance) << "parameter " << i;
      const Trained again = train_small(layers, activation, MatmulPrecision::bf16);
      EXPECT_EQ(again.changes, rounded.changes);
    }
}

}  // namespace
}  // namespace tandem
