// What the preset "record" adds to a run: lookahead, rates of norm biases, views of test images, weights that
// are computed from images, and its hyperparameters.
#include <gtest/gtest.h>

#include <csignal>
#include <numeric>

#include "tandem/data/loader/materialize.h"
#include "tandem/nn/whitened_cnn.h"
#include "tandem/nn/whitening.h"
#include "tandem/ops/random.h"
#include "tandem/optim/fused_optimizer.h"
#include "tandem/tensor/tape.h"
#include "tandem/train/evaluate_views.h"
#include "tandem/train/training_state.h"
#include "tests/device/device_cases.h"
#include "tests/train/trainer_case.h"

namespace tandem {
namespace {

ImageSet random_images(std::int64_t count, std::int64_t side, std::int64_t channels) {
  return {.images = random_integers({count, side, side, channels}, 0, 256, {.seed = 3, .dtype = DType::u8}),
          .labels = random_integers({count}, 0, 2, {.seed = 4, .dtype = DType::i32}),
          .classes = {"a", "b"}};
}

// The outputs are two pixels of a gray image.
struct TwoPixels : Module {
  Linear unused{1, 1};
  TwoPixels() { add_child("unused", unused); }
  Tensor forward(const Tensor& x) override {
    const Tensor rows = x.reshape({x.size(0), x.size(1) * x.size(2)});
    return rows.slice(1, 4, 6).contiguous();
  }
};

class TestViewsOf : public testing::TestWithParam<Device> {};

TEST_P(TestViewsOf, Evaluation_IsTheMeanOverViews) {
  constexpr int side = 4;
  const ImageSet set = random_images(40, side, 1);
  const std::vector<std::uint8_t> pixels = set.images.to_vector<std::uint8_t>();
  const auto reflected = [](int at) { return at < 0 ? -at : at >= side ? 2 * (side - 1) - at : at; };
  const auto seen = [&](std::size_t image, int output, int shift, bool mirrored) {
    const int row = (4 + output) / side, column = (4 + output) % side;
    const int from = mirrored ? side - 1 - column : column;
    return pixels[image * side * side +
                  static_cast<std::size_t>(reflected(row + shift) * side + reflected(from + shift))] /
           255.0;
  };
  TwoPixels model;
  model.to(GetParam());
  const ImageInput input{.flat = false, .height = side, .width = side, .channels = 1};
  for (const TestViews views : {TestViews::one, TestViews::flip, TestViews::shift}) {
    double sum = 0;
    for (const TestView& view : views_of(views)) sum += view.weight;
    EXPECT_EQ(sum, 1);
    const Evaluation got = evaluate_views(model, set.to(GetParam()), LossKind::cross_entropy, input, views);
    ASSERT_EQ(got.outputs.size(), 80u);
    std::int64_t correct = 0;
    for (std::size_t i = 0; i < 40; ++i) {
      double expected[2];
      for (const int output : {0, 1}) {
        const auto both = [&](int shift) {
          return (seen(i, output, shift, false) + seen(i, output, shift, true)) / 2;
        };
        expected[output] = views == TestViews::one    ? seen(i, output, 0, false)
                           : views == TestViews::flip ? both(0)
                                                      : (both(0) + (both(1) + both(-1)) / 2) / 2;
        EXPECT_NEAR(got.outputs[2 * i + static_cast<std::size_t>(output)], expected[output], 1e-6) << i;
      }
      correct += (expected[1] > expected[0] ? 1 : 0) == set.labels.to_vector<std::int32_t>()[i];
    }
    EXPECT_NEAR(got.accuracy * 40, static_cast<double>(correct), 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, TestViewsOf, testing::ValuesIn(test_devices()), device_name);

struct Net : Module {
  Linear hidden{16, 5}, output{5, 2};
  Net() { add_children({{"hidden", hidden}, {"output", output}}); }
  Tensor forward(const Tensor& x) override { return output(hidden(x.reshape({x.size(0), 16}))); }
};

FitOptions small_run() {
  FitOptions options;
  options.epochs = 3;
  options.batch_size = 8;
  options.learning_rate = 0.2;
  options.momentum = 0.9;
  options.precision = MatmulPrecision::fp32;
  return options;
}

constexpr ImageInput small_input{.flat = false, .height = 4, .width = 4, .channels = 1};

std::vector<float> values_of(const Module& model) {
  std::vector<float> all;
  for (const NamedTensor& each : model.state_dict())
    for (const float value : each.tensor.detach().contiguous().to_vector<float>()) all.push_back(value);
  return all;
}

class RecordEngine : public testing::TestWithParam<Device> {};

// 15 steps: updates after 5, 10 and 15, of which the last puts the slow weights into the model.
TEST_P(RecordEngine, Lookahead_EqualsUpdatesBetweenSingleSteps) {
  const ImageSet set = random_images(40, 4, 1);
  FitOptions options = small_run();
  Net alone, together;
  together.load_state_dict(alone.state_dict());
  TrainingState plain(alone, options, set, small_input, GetParam());
  Lookahead lookahead(alone, {.decay = 0.9});
  for (std::int64_t step = 0; step < 15; ++step) {
    plain.engine().run(step / 5, step % 5, 1);
    const NoGrad no_grad;
    lookahead.after_step(step + 1, 15);
  }
  options.lookahead = 0.9;
  TrainingState state(together, options, set, small_input, GetParam());
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) state.engine().run(epoch, 0, 5);
  EXPECT_EQ(values_of(together), values_of(alone));
}

INSTANTIATE_TEST_SUITE_P(Devices, RecordEngine, testing::ValuesIn(test_devices()), device_name);

TEST(RecordOptions, NormBiasRate_IsThatOfBatchNormsAlone) {
  FitOptions options = small_run();
  options.norm_bias_lr = 64;
  options.weight_decay = 1e-3;
  WhitenedCnn model({.classes = 2, .channels = 1, .widths = {8, 8, 8}});
  const ImageInput input{.flat = false, .height = 28, .width = 28, .channels = 1};
  TrainingState state(model, options, random_images(16, 28, 1), input, cpu_device);
  const FusedOptimizer& optimizer = *state.optimizer().fused();
  int biases = 0;
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
    const std::string& name = optimizer.parameters()[i].name;
    const bool is_norm = name.starts_with("bn");
    biases += is_norm;
    EXPECT_EQ(optimizer.rate_factors()[i], is_norm ? 64 : 1) << name;
  }
  EXPECT_EQ(biases, 6);
  options.optimizer = "rmsprop";
  options.momentum = 0;
  EXPECT_NE(error_text([&] {
              TrainingState(model, options, random_images(16, 28, 1), input, cpu_device);
            }).find("norm_bias_lr requires optimizer sgd, adam or adamw, got rmsprop"),
            std::string::npos);
}

// airbench94: a rate of 11.5 per 1,024 summed losses and a decay of 0.0153, both divided by 1 + 1 / 0.15.
TEST(RecordOptions, Preset_HasThePublishedHyperparameters) {
  TrainOptions options;
  apply_preset(options, "record");
  EXPECT_NEAR(options.learning_rate, 1.5, 1e-12);
  EXPECT_NEAR(options.learning_rate * options.weight_decay, 0.0153 * 0.15 / 1.15, 1e-12);
  EXPECT_NEAR(options.min_lr / options.learning_rate, 0.07, 1e-12);
  const ScheduleOptions schedule = options.schedule_options();
  const auto rate = [&](std::int64_t step) {
    return learning_rate_at(schedule, options.learning_rate, step / 48, step % 48, 48);
  };
  EXPECT_NEAR(rate(0), 0.2 * 1.5, 1e-12);
  EXPECT_NEAR(rate(110), 1.5, 1e-12);  // ⌊0.23 · 480⌋
  EXPECT_NEAR(rate(479), 1.5 * (1 - 0.93 * 369 / 370), 1e-12);
  EXPECT_EQ(options.transform.to_string(), "flip alternating, shift -2 2 reflect");
  check_options(options);
  EXPECT_EQ(resolve_options(options, false).norm, imagenet_norm);
  TrainOptions cnn;
  cnn.model = "cnn";
  EXPECT_EQ(resolve_options(cnn, false).norm, PixelNorm{});
  EXPECT_EQ(error_text([&] { apply_preset(options, "recrod"); }),
            "expected one of best, record, got 'recrod'; did you mean 'record'?");
}

TEST(RecordOptions, ViewsOfTestImages_NeedALossOfTheirOutputs) {
  TrainOptions options;
  options.test_views = TestViews::flip;
  options.loss_function = [](const Tensor& outputs, const Tensor&) { return outputs; };
  EXPECT_EQ(error_text([&] { check_fit_options(options, "train"); }),
            "[train] test_views require one of Tandem's losses, got a loss_function");
}

class RecordRun : public TrainerCase {
 protected:
  RecordRun() {
    options_ = TrainOptions();
    const ImageSet digits = make_digits(52, 7);
    write_split(folder_ / "few", digits.slice(0, 40), digits.slice(40, 52));
    apply_preset(options_, "record");
    options_.data = (folder_ / "few").string();
    options_.device = cpu_device;
    options_.epochs = 2;
    options_.batch_size = 8;
    options_.batches_per_epoch = 4;
    options_.learning_rate = 0.01;
    options_.min_lr = 0;
    options_.precision = MatmulPrecision::fp32;
  }
};

TEST_F(RecordRun, WhiteningFilters_AreThoseOfTheTrainingImages) {
  const TrainResult result = run("run");
  const ImageSet images = materialize(*load_training_data(options_, {}).train.dataset);
  ASSERT_EQ(images.count(), 40);
  const Tensor expected = whitening_filters(images.images, imagenet_norm, {2, 2});
  bool is_found = false;
  for (const NamedTensor& each : read_safetensors(RunFolder{folder_ / "run"}.best()).tensors) {
    if (each.name != "whiten.weight") continue;
    is_found = true;
    EXPECT_EQ(each.tensor.to_vector<float>(), expected.to_vector<float>());
  }
  EXPECT_TRUE(is_found);
  // The accuracy is that of all views.
  Model model = load_model(RunFolder{folder_ / "run"}.best());
  EXPECT_EQ(model.info.norm.mean[0], imagenet_norm.mean[0]);
  const ImageSet test = load_training_data(options_, {}).test;
  const ImageInput input{.flat = false, .height = 28, .width = 28, .channels = 1, .norm = imagenet_norm};
  EXPECT_EQ(result.test_loss,
            evaluate_views(*model.module, test, LossKind::cross_entropy, input, TestViews::shift).loss);
}

TEST_F(RecordRun, StoppedAndResumed_GivesTheSameBits) {
  run("whole");
  for (const int polls : {2, 3}) {
    const std::string name = "stopped" + std::to_string(polls);
    int left = polls;
    run(name, false, {.stop_signal = [&] { return --left == 0 ? SIGTERM : 0; }});
    run(name, true);
    expect_same_weights(folder_ / "whole", folder_ / name);
  }
}

}  // namespace
}  // namespace tandem
