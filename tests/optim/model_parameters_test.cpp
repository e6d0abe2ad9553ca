// Optimizers and the parameters of a model: frozen ones stay, replaced ones are an error.
#include <gtest/gtest.h>

#include "tandem/nn/activation.h"
#include "tandem/nn/cnn.h"
#include "tandem/nn/linear.h"
#include "tandem/nn/sequential.h"
#include "tandem/ops/cross_entropy.h"
#include "tandem/optim/fused_optimizer.h"
#include "tests/ops/op_test.h"

namespace tandem {
namespace {

TEST(OptimizerOfAModel, FrozenParameters_StayAsTheyAre) {
  Sequential model(Linear(4, 5), Tanh(), Linear(5, 3));
  const Tensor x = random_tensor({6, 4}, DType::f32, cpu_device, 1), labels({0, 1, 2, 0, 1, 2}, DType::i32);
  Adam optimizer(model.parameters(), {.lr = 0.1, .weight_decay = 0.1});
  cross_entropy(model(x), labels).backward();  // a gradient from before the freezing must not count
  for (auto& p : model.parameters())
    if (p.name.starts_with("0.")) p.tensor.set_requires_grad(false);
  const NamedTensors parameters = model.parameters();
  std::vector<std::vector<double>> before;
  for (const auto& [name, parameter] : parameters) before.push_back(values_of(parameter));
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    cross_entropy(model(x), labels).backward();
    optimizer.step();
  }
  for (std::size_t i = 0; i < parameters.size(); ++i)
    EXPECT_EQ(values_of(parameters[i].tensor) == before[i], parameters[i].name.starts_with("0."))
        << parameters[i].name;
  model.unfreeze();
  cross_entropy(model(x), labels).backward();
  optimizer.step();
  EXPECT_NE(values_of(parameters[0].tensor), before[0]);
}

TEST(OptimizerOfAModel, MadeBeforeSetHead_StepThrows) {
  Cnn model({.classes = 3, .width = 4});
  SGD optimizer(model.parameters(), {.lr = 0.1});
  model.set_head(Linear(model.feature_count(), 2));
  const std::string text = error_text([&] { optimizer.step(); });
  EXPECT_EQ(
      text,
      "[optimizer] expected the parameters of the model, got 'fc.weight', which the model has replaced: "
      "construct the optimizer after moving the model to a device or replacing a layer");
  EXPECT_EQ(optimizer.step_count(), 0);
  SGD(model.parameters(), {.lr = 0.1}).step();
}

TEST(OptimizerOfAModel, MovedToItsOwnDevice_StepSucceeds) {
  Sequential model(Linear(2, 2));
  SGD optimizer(model.parameters(), {.lr = 0.1});
  model.to(cpu_device);
  optimizer.step();
  EXPECT_EQ(optimizer.step_count(), 1);
}

TEST(OptimizerOfAModel, cuda_MadeBeforeTo_StepThrows) {
  if (cuda_device_count() == 0) GTEST_SKIP() << why_no_cuda();
  Sequential model(Linear(2, 2));
  SGD optimizer(model.parameters(), {.lr = 0.1});
  model.to("cuda:0");
  EXPECT_NE(error_text([&] { optimizer.step(); }).find("got '0.weight', which the model has replaced"),
            std::string::npos);
  SGD(model.parameters(), {.lr = 0.1}).step();
}

}  // namespace
}  // namespace tandem
