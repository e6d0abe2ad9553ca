// ModuleEngine with an optimizer that is not a fused one: on CUDA it runs after the captured graph.
#include <gtest/gtest.h>

#include <cmath>

#include "tandem/data/synthetic/digits.h"
#include "tandem/nn/mlp.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/tensor/copy.h"
#include "tandem/train/engines/module_engine.h"
#include "tests/device/device_cases.h"

namespace tandem {
namespace {

class OwnSgd : public Optimizer {
 public:
  using Optimizer::Optimizer;
  void update(std::size_t, const Tensor& parameter, const Tensor& gradient) override {
    copy_into(parameter.detach(), subtract(parameter, multiply(gradient, learning_rate())));
  }
};

// A perceptron on digits.
struct SmallTask {
  SmallTask(Device device, bool own, std::int64_t batch) : images(make_digits(40, 3).to(device)) {
    model = make_mlp({.layers = {784, 12, 10}, .activation = Activation::relu});
    model->to(device);
    if (own)
      optimizer = std::make_unique<OwnSgd>(model->parameters(), 0.1);
    else
      optimizer = std::make_unique<SGD>(model->parameters(), SgdOptions{.lr = 0.1});
    source =
        std::make_unique<InMemorySource>(images, BatchPlan{.samples = 40, .batch_size = batch, .seed = 2});
    task =
        std::make_unique<TrainingTask>(TrainingTask{.model = *model,
                                                    .optimizer = *optimizer,
                                                    .source = *source,
                                                    .schedule = {.kind = ScheduleKind::cosine, .epochs = 6},
                                                    .learning_rate = 0.1});
  }
  std::vector<float> weights() const {
    std::vector<float> all;
    for (const auto& [name, tensor] : model->state_dict())
      for (const float value : tensor.to_vector<float>()) all.push_back(value);
    return all;
  }

  ImageSet images;
  std::unique_ptr<Sequential> model;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<BatchSource> source;
  std::unique_ptr<TrainingTask> task;
};

class OwnOptimizerEngine : public testing::TestWithParam<Device> {};

// Enough epochs that graphs are captured and replayed, with batches of 16, 16 and 8.
TEST_P(OwnOptimizerEngine, Training_EqualsTheFusedRule) {
  SmallTask own(GetParam(), true, 16), fused(GetParam(), false, 16);
  const auto engine = make_engine(*own.task);
  EXPECT_NE(dynamic_cast<ModuleEngine*>(engine.get()), nullptr);
  ModuleEngine expected(*fused.task);
  for (std::int64_t epoch = 0; epoch < 6; ++epoch) {
    const StepSums a = engine->run(epoch, 0, 3), b = expected.run(epoch, 0, 3);
    EXPECT_NEAR(a.loss, b.loss, 1e-3 * b.loss) << epoch;
  }
  EXPECT_EQ(own.optimizer->step_count(), 18);
  EXPECT_EQ(own.optimizer->learning_rate(), fused.optimizer->learning_rate());
  for (const NamedTensor& parameter : own.optimizer->parameters())
    EXPECT_FALSE(parameter.tensor.grad().defined());
  const std::vector<float> got = own.weights(), want = fused.weights();
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 1e-5 * (1 + std::abs(want[i]))) << i;
}

TEST_P(OwnOptimizerEngine, ReplayedSteps_GiveSameBits) {
  SmallTask kept(GetParam(), true, 10), fresh(GetParam(), true, 10);
  ModuleEngine engine(*kept.task);
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    engine.run(epoch, 0, 4);
    for (std::int64_t step = 0; step < 4; ++step) ModuleEngine(*fresh.task).run(epoch, step, 1);
    EXPECT_EQ(kept.weights(), fresh.weights()) << epoch;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, OwnOptimizerEngine, testing::ValuesIn(test_devices()), device_name);

}  // namespace
}  // namespace tandem
