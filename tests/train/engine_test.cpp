// The perceptron engines against ModuleEngine, which uses the autograd tape.
#include "tandem/train/engines/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tandem/core/parallel.h"
#include "tandem/device/buffer.h"
#include "tandem/device/on_backend.h"
#include "tandem/nn/mlp.h"
#include "tandem/ops/random.h"
#include "tandem/train/engines/mlp_engine.h"
#include "tandem/train/engines/module_engine.h"
#include "tests/device/device_cases.h"

namespace tandem {
namespace {

struct Case {
  std::string name;
  std::vector<std::int64_t> layers;
  Activation activation = Activation::sigmoid;
  LossKind loss = LossKind::cross_entropy;
  OptimizerOptions rule;
  std::int64_t batch = 16;
  double learning_rate = 0.1;
  double label_smoothing = 0;
};

// Owns everything that a task refers to.
struct TaskFixture {
  TaskFixture(const Case& c, Device device, std::int64_t shards = 1, std::int64_t samples = 200)
      : model(make_mlp({.layers = c.layers,
                        .activation = c.activation,
                        .sigmoid_output = c.loss == LossKind::mse,
                        .seed = 3})) {
    images.images = random_integers({samples, 1, c.layers.front(), 1}, 0, 256,
                                    {.seed = 5, .dtype = DType::u8, .device = device});
    images.labels =
        random_integers({samples}, 0, c.layers.back(), {.seed = 6, .dtype = DType::i32, .device = device});
    images.classes.resize(static_cast<std::size_t>(c.layers.back()));
    model->to(device);
    optimizer = std::make_unique<FusedOptimizer>(model->parameters(), c.rule, c.learning_rate);
    source =
        std::make_unique<InMemorySource>(images, BatchPlan{.samples = samples,
                                                           .batch_size = c.batch,
                                                           .seed = 7,
                                                           .part = {.shards = shards, .own = {0, shards}}});
    task =
        std::make_unique<TrainingTask>(TrainingTask{.model = *model,
                                                    .optimizer = *optimizer,
                                                    .source = *source,
                                                    .schedule = {.kind = ScheduleKind::cosine, .epochs = 2},
                                                    .learning_rate = c.learning_rate,
                                                    .loss = c.loss,
                                                    .label_smoothing = c.label_smoothing});
  }

  std::vector<float> weights() const {
    std::vector<float> all;
    const auto append = [&](const NamedTensors& tensors) {
      for (const auto& [name, tensor] : tensors)
        if (tensor.dtype() == DType::f32)
          for (const float value : tensor.detach().to_vector<float>()) all.push_back(value);
    };
    append(model->state_dict());
    append(optimizer->state());
    return all;
  }

  ImageSet images;
  std::unique_ptr<Sequential> model;
  std::unique_ptr<FusedOptimizer> optimizer;
  std::unique_ptr<BatchSource> source;
  std::unique_ptr<TrainingTask> task;
};

std::vector<Case> cases() {
  const OptimizerOptions momentum{.momentum = 0.9, .weight_decay = 1e-3};
  const OptimizerOptions nesterov{.momentum = 0.8, .nesterov = true};
  const OptimizerOptions adam{.kind = OptimizerKind::adam};
  const OptimizerOptions adamw{.kind = OptimizerKind::adamw, .weight_decay = 0.05};
  return {
      {.name = "sgd", .layers = {784, 200, 10}},
      {.name = "tanh_momentum",
       .layers = {48, 37, 7},
       .activation = Activation::tanh,
       .rule = momentum,
       .batch = 33},
      {.name = "relu_nesterov",
       .layers = {16, 16, 16},
       .activation = Activation::relu,
       .rule = nesterov,
       .batch = 5},
      {.name = "adam_one_row", .layers = {32, 20, 3}, .rule = adam, .batch = 1, .learning_rate = 1e-3},
      {.name = "adamw_all", .layers = {64, 50, 10}, .rule = adamw, .batch = 200, .learning_rate = 1e-3},
      {.name = "mse", .layers = {80, 33, 4}, .loss = LossKind::mse, .batch = 20},
      {.name = "mse_linear_odd", .layers = {19, 5}, .loss = LossKind::mse, .batch = 7},
      {.name = "linear", .layers = {30, 12}, .batch = 64},
      {.name = "three_layers", .layers = {50, 40, 30, 10}, .activation = Activation::relu, .rule = momentum},
      {.name = "four_layers_many_classes",
       .layers = {33, 17, 70, 35, 40},
       .activation = Activation::tanh,
       .batch = 100},
      {.name = "two_hidden_layers", .layers = {50, 44, 36, 10}, .activation = Activation::relu, .batch = 48},
      {.name = "mse_two_hidden_layers", .layers = {40, 32, 20, 5}, .loss = LossKind::mse, .batch = 30},
      {.name = "smoothing", .layers = {32, 24, 6}, .batch = 12, .label_smoothing = 0.1},
  };
}

using Parameter = std::tuple<Case, Device>;
class EngineOf : public testing::TestWithParam<Parameter> {
 protected:
  const Case& c() const { return std::get<0>(GetParam()); }
  Device device() const { return std::get<1>(GetParam()); }
  std::unique_ptr<Engine> fast_engine(const TrainingTask& task) const {
    return on_backend(device(), "test", [&]<Backend B>() { return make_mlp_engine<B>(task); });
  }
};

TEST_P(EngineOf, Training_EqualsAutograd) {
  TaskFixture expected(c(), device()), got(c(), device());
  ModuleEngine general(*expected.task);
  const auto fast = fast_engine(*got.task);
  if (!fast) GTEST_SKIP() << "no special engine for this network on " << device().to_string();
  const std::int64_t steps = got.task->batches().steps();
  StepSums expected_sums, sums;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    expected_sums += general.run(epoch, 0, steps);
    sums += fast->run(epoch, 0, steps);
  }
  general.store();
  fast->store();
  EXPECT_EQ(sums.samples, 400);
  EXPECT_NEAR(sums.loss, expected_sums.loss, 1e-3 * std::abs(expected_sums.loss));
  EXPECT_NEAR(static_cast<double>(sums.correct), static_cast<double>(expected_sums.correct), 2);
  EXPECT_EQ(got.optimizer->step_count(), expected.optimizer->step_count());
  const auto a = got.weights(), b = expected.weights();
  ASSERT_EQ(a.size(), b.size());
  // Adam divides by the root of a mean square that may be close to 0.
  const double tolerance = c().rule.kind == OptimizerKind::sgd ? 2e-5 : 2e-3;
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::abs(static_cast<double>(b[i])))) << i;
}

TEST_P(EngineOf, StepsDividedIntoRuns_GiveSameBits) {
  TaskFixture whole(c(), device()), cut(c(), device());
  const std::int64_t steps = whole.task->batches().steps();
  const auto engine = make_engine(*whole.task);
  StepSums sums = engine->run(1, 0, steps);
  engine->store();
  StepSums pieces;
  for (std::int64_t first = 0; first < steps;) {
    // A new engine each time, which loads what the previous one has stored.
    const auto next = make_engine(*cut.task);
    const std::int64_t count = std::min<std::int64_t>(1 + first, steps - first);
    pieces += next->run(1, first, count);
    next->store();
    first += count;
  }
  EXPECT_EQ(whole.weights(), cut.weights());
  EXPECT_EQ(sums.correct, pieces.correct);
  EXPECT_NEAR(sums.loss, pieces.loss, 1e-9 * std::abs(sums.loss));
}

// Most batches have shards of unequal size, and some last ones fewer rows than shards.
TEST_P(EngineOf, Shards_GiveTheSameWeightsOnAnyNumberOfThreads) {
  if (device().is_cuda()) GTEST_SKIP();
  const auto weights_with = [&](std::int64_t shards, int threads) {
    set_thread_count(threads);
    TaskFixture run(c(), device(), shards);
    const auto engine = fast_engine(*run.task);
    engine->run(0, 0, run.task->batches().steps());
    engine->store();
    set_thread_count(usable_cpus());
    return run.weights();
  };
  const std::vector<float> whole = weights_with(1, 1);
  const double tolerance = c().rule.kind == OptimizerKind::sgd ? 1e-5 : 2e-3;
  for (const std::int64_t shards : {2, 3, 11}) {
    if (shards > c().batch) continue;
    const std::vector<float> weights = weights_with(shards, 1);
    EXPECT_EQ(weights_with(shards, 3), weights) << shards << " shards";
    if (c().batch > 4) {
      EXPECT_NE(weights, whole) << shards << " shards";
    }
    for (std::size_t i = 0; i < whole.size(); ++i)
      ASSERT_NEAR(weights[i], whole[i], tolerance * (1 + std::abs(static_cast<double>(whole[i])))) << shards;
  }
}

TEST_P(EngineOf, ThreadCount_DoesNotChangeBits) {
  if (device().is_cuda()) GTEST_SKIP();
  std::vector<float> first;
  for (const int threads : {1, 2, 3, 5}) {
    const ThreadLimit limit(threads);
    set_thread_count(threads);
    TaskFixture run(c(), device());
    const auto engine = fast_engine(*run.task);
    engine->run(0, 0, run.task->batches().steps());
    engine->store();
    if (first.empty()) first = run.weights();
    EXPECT_EQ(run.weights(), first) << threads << " threads";
  }
  set_thread_count(usable_cpus());
}

TEST_P(EngineOf, SteadyState_AllocatesNothing) {
  TaskFixture run(c(), device());
  const auto engine = fast_engine(*run.task);
  if (!engine) GTEST_SKIP() << "no special engine for this network on " << device().to_string();
  const std::int64_t steps = run.task->batches().steps();
  engine->run(0, 0, steps);
  const std::int64_t before = pool_statistics(device()).system_allocations;
  engine->run(1, 0, steps);
  EXPECT_EQ(pool_statistics(device()).system_allocations, before);
}

INSTANTIATE_TEST_SUITE_P(Cases, EngineOf,
                         testing::Combine(testing::ValuesIn(cases()), testing::ValuesIn(test_devices())),
                         [](const testing::TestParamInfo<Parameter>& tested) {
                           return std::get<0>(tested.param).name +
                                  (std::get<1>(tested.param).is_cuda() ? "_cuda" : "_cpu");
                         });

}  // namespace
}  // namespace tandem
