#include "tandem/train/engines/module_engine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tandem/data/synthetic/digits.h"
#include "tandem/nn/mlp.h"
#include "tandem/ops/arithmetic.h"
#include "tandem/ops/backward.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/concat.h"
#include "tandem/ops/gather.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/training_state.h"
#include "tests/device/device_cases.h"

namespace tandem {
namespace {

TrainOptions small_options() {
  TrainOptions options{.layers = {784, 12, 10}, .dropout = 0.25};
  options.epochs = 2;
  options.batch_size = 16;
  options.learning_rate = 0.1;
  options.momentum = 0.9;
  options.schedule = ScheduleKind::one_cycle;
  return options;
}

std::vector<float> weights(const TrainingState& state) {
  std::vector<float> all;
  for (const auto& [name, tensor] : state.model().parameters()) {
    const std::vector<float> values = tensor.detach().to_vector<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(ModuleEngine, StepsDividedIntoRuns_GiveSameBits) {
  const ImageSet images = make_digits(100, 3);
  TrainingState whole(small_options(), images, cpu_device), parts(small_options(), images, cpu_device);
  ModuleEngine one(whole.task()), two(parts.task());
  const StepSums all = one.run(0, 0, 7);
  StepSums sums = two.run(0, 0, 1);
  sums += two.run(0, 1, 4);
  sums += two.run(0, 5, 2);
  EXPECT_EQ(weights(whole), weights(parts));
  EXPECT_EQ(all.samples, 100);
  EXPECT_EQ(sums.samples, 100);
  EXPECT_EQ(all.correct, sums.correct);
  EXPECT_NEAR(all.loss, sums.loss, 1e-9);
}

TEST(ModuleEngine, Bf16OnTheCpu_TrainsLikeF32) {
  const ImageSet images = make_digits(64, 3);
  TrainOptions options{.model = "cnn"};
  options.epochs = 1;
  options.batch_size = 16;
  options.learning_rate = 0.01;
  const auto train = [&](MatmulPrecision precision) {
    options.precision = precision;
    TrainingState state(options, images, cpu_device);
    const double loss = ModuleEngine(state.task()).run(0, 0, 4).loss;
    return std::pair(loss, weights(state));
  };
  const auto [exact_loss, exact] = train(MatmulPrecision::fp32);
  const auto [loss, trained] = train(MatmulPrecision::bf16);
  EXPECT_NEAR(loss / exact_loss, 1, 0.01);
  EXPECT_NE(trained, exact);
  EXPECT_EQ(train(MatmulPrecision::bf16).second, trained);
}

// The same steps written as a plain loop, with the hyperparameters that the other engines use.
TEST(ModuleEngine, Steps_EqualPlainLoop) {
  TrainOptions options = small_options();
  options.dropout = 0;
  const ImageSet images = make_digits(40, 3);
  TrainingState state(options, images, cpu_device), by_hand(options, images, cpu_device);
  ModuleEngine(state.task()).run(1, 0, 3);

  const TrainingTask& task = by_hand.task();
  for (std::int64_t step = 0; step < 3; ++step) {
    const Tensor order = Tensor::empty({task.batches().rows(step)}, DType::i32);
    fill_order(task.batches(), 1, step * 16, order);
    const Tensor x =
        multiply(cast(gather_rows(images.images.reshape({40, 784}), order), DType::f32), 1.0f / 255.0f);
    backward(compute_loss(task.loss, task.model.forward(x), gather_rows(images.labels, order)));
    const detail::StepHyperparameters<float> hyperparameters = hyperparameters_at(task, 1, step);
    EXPECT_EQ(hyperparameters.momentum, static_cast<float>(momentum_at(task.schedule, 0.9, 1, step, 3)));
    task.optimizer.set_learning_rate(hyperparameters.rate);
    task.optimizer.fused()->set_momentum(momentum_at(task.schedule, 0.9, 1, step, 3));
    task.optimizer.step();
    task.optimizer.zero_grad();
  }
  EXPECT_EQ(weights(state), weights(by_hand));
  EXPECT_NE(weights(state), weights(TrainingState(options, images, cpu_device)));
}

TEST(ModuleEngine, StepHyperparameters_CountStepsOverEpochs) {
  TrainOptions options = small_options();
  options.momentum = 0;
  options.optimizer = "adam";
  options.schedule = ScheduleKind::constant;
  TrainingState state(options, make_digits(40, 3), cpu_device);
  const detail::StepHyperparameters<float> got =
      hyperparameters_at(state.task(), 2, 1);  // 3 steps per epoch: the eighth
  const detail::StepHyperparameters<float> expected =
      detail::step_hyperparameters<float>(state.task().optimizer.fused()->options(), 0.1, 8);
  EXPECT_EQ(got.rate, expected.rate);
  EXPECT_EQ(got.root_scale, expected.root_scale);
}

TEST(ModuleEngine, NonFiniteLoss_IsReturned) {
  TrainOptions options = small_options();
  options.activation = Activation::relu;
  options.learning_rate = 1e30;
  TrainingState state(options, make_digits(100, 3), cpu_device);
  EXPECT_FALSE(std::isfinite(ModuleEngine(state.task()).run(0, 0, 7).loss));
}

TEST(ModuleEngine, RandomBatches_MayExceedTheData) {
  TrainOptions options = small_options();
  options.batches_per_epoch = 9;
  TrainingState state(options, make_digits(40, 3), cpu_device);
  EXPECT_EQ(ModuleEngine(state.task()).run(0, 0, 9).samples, 9 * 16);
}

class ModuleEngineOnDevice : public testing::TestWithParam<Device> {};

// A new engine for every step replays nothing. Batches of 8, 8 and 4 with evaluations in between, and layers
// that fold their norms in evaluation only or in training too.
TEST_P(ModuleEngineOnDevice, ReplayedSteps_GiveSameBits) {
  const ImageSet images = make_digits(20, 3);
  for (const bool frozen : {false, true})
    for (const bool fixed : {false, true}) {
      SCOPED_TRACE(fmt::format("frozen {} fixed {}", frozen, fixed));
      TrainOptions options{.model = "cnn", .freeze = frozen, .freeze_bn = fixed};
      options.epochs = 5;
      options.batch_size = 8;
      options.learning_rate = 0.05;
      options.momentum = 0.9;
      TrainingState kept(options, images, GetParam()), fresh(options, images, GetParam());
      ModuleEngine engine(kept.task());
      const auto evaluated = [&](TrainingState& state) {
        return evaluate(state.model(), images, LossKind::cross_entropy, state.task().input).outputs;
      };
      for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
        const StepSums sums = engine.run(epoch, 0, 3);
        StepSums by_step;
        for (std::int64_t step = 0; step < 3; step += engine.stride())
          by_step += ModuleEngine(fresh.task()).run(epoch, step, std::min(engine.stride(), 3 - step));
        EXPECT_EQ(sums.correct, by_step.correct);
        EXPECT_NEAR(sums.loss, by_step.loss, 1e-9);
        EXPECT_EQ(weights(kept), weights(fresh)) << epoch;
        EXPECT_EQ(evaluated(kept), evaluated(fresh)) << epoch;
      }
    }
}

// Against two steps with images mixed in the test and a loss that weights both labels.
TEST_P(ModuleEngineOnDevice, Mix_BlendsImagesAndLabels) {
  const ImageSet images = make_digits(20, 3);
  for (const MixRecipe& mix : {MixRecipe{.mixup = 0.4}, MixRecipe{.cutmix = 1}})
    for (const bool frozen : {false, true}) {
      TrainOptions options{.model = "cnn", .freeze = frozen};
      options.epochs = 1;
      options.batch_size = 12;
      options.learning_rate = 0.05;
      options.precision = MatmulPrecision::fp32;
      options.mixup = mix.mixup;
      options.cutmix = mix.cutmix;
      TrainingState state(options, images, GetParam()), by_hand(options, images, GetParam());
      ModuleEngine(state.task()).run(0, 0, 2);

      const TrainingTask& task = by_hand.task();
      const ImageSet here = images.to(GetParam());
      double min_share = 1;
      for (std::int64_t step = 0; step < 2; ++step) {
        const std::int64_t rows = task.batches().rows(step);
        const Tensor order = Tensor::empty({rows}, DType::i32, GetParam());
        fill_order(task.batches(), 0, step * 12, order);
        const MixArguments draw = sample_mix(mix, 28, 28, options.seed, 0, step);
        min_share = std::min(min_share, draw.label_weight);
        const Tensor mixed = Tensor::empty({rows, 28, 28, 1}, DType::u8, GetParam());
        mix_batch(draw, here.images, order, mixed);
        const Tensor labels = gather_rows(here.labels, order);
        const Tensor others = concat({labels.slice(0, rows - 1, rows), labels.slice(0, 0, rows - 1)}, 0);
        const Tensor outputs = task.model.forward(network_input(mixed, task.input));
        backward(add(multiply(compute_loss(task.loss, outputs, labels), draw.label_weight),
                     multiply(compute_loss(task.loss, outputs, others), 1 - draw.label_weight)));
        task.optimizer.step();
        task.optimizer.zero_grad();
      }
      EXPECT_LT(min_share, 0.999);
      const std::vector<float> got = weights(state), expected = weights(by_hand);
      for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-4) << i;
      EXPECT_NE(got, weights(TrainingState(options, images, GetParam())));
    }
}

// Seven steps of a frozen network, the last of 4 images: features of four steps and of the rest at once,
// against one step at a time.
TEST_P(ModuleEngineOnDevice, FeaturesOfSeveralSteps_EqualOneByOne) {
  const ImageSet images = make_digits(100, 3);
  for (const bool fixed : {false, true}) {
    TrainOptions options{.model = "cnn", .freeze = true, .freeze_bn = fixed};
    options.epochs = 3;
    options.batch_size = 16;
    options.learning_rate = 0.05;
    options.momentum = 0.9;
    TrainingState at_once(options, images, GetParam()), cut(options, images, GetParam()),
        single(options, images, GetParam());
    ModuleEngine first(at_once.task()), second(cut.task()), third(single.task());
    EXPECT_EQ(first.stride(), 4);
    for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
      const StepSums all = first.run(epoch, 0, 7);
      second.run(epoch, 0, 4);
      second.run(epoch, 4, 3);
      EXPECT_EQ(weights(at_once), weights(cut));
      StepSums sums;
      for (std::int64_t step = 0; step < 7; ++step) sums += third.run(epoch, step, 1);
      EXPECT_EQ(all.samples, 100);
      EXPECT_EQ(all.correct, sums.correct);
      EXPECT_NEAR(all.loss, sums.loss, 1e-3);
    }
    const NamedTensors expected = single.model().state_dict();
    const NamedTensors got = at_once.model().state_dict();
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i].tensor.dtype() == DType::i64) {
        EXPECT_EQ(got[i].tensor.to_vector<std::int64_t>(), expected[i].tensor.to_vector<std::int64_t>());
        continue;
      }
      const auto a = got[i].tensor.to_vector<float>(), b = expected[i].tensor.to_vector<float>();
      for (std::size_t k = 0; k < a.size(); ++k)
        ASSERT_NEAR(a[k], b[k], 1e-4 * (1 + std::abs(b[k]))) << got[i].name << " " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ModuleEngineOnDevice, testing::ValuesIn(test_devices()), device_name);

}  // namespace
}  // namespace tandem
