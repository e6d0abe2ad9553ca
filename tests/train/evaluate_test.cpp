#include "tandem/train/evaluator.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tandem/data/synthetic/digits.h"
#include "tandem/device/buffer.h"
#include "tandem/train/model_file.h"
#include "tandem/train/predict.h"
#include "tandem/train/prediction_sheet.h"
#include "tandem/train/training_state.h"
#include "tests/device/device_cases.h"

namespace tandem {
namespace {

// More images than one batch, and a network whose dropout must be off in evaluation.
TEST(Evaluate, ManyImages_EqualOneAtATime) {
  const ImageSet set = make_digits(2100, 4);
  const std::unique_ptr<Module> model = make_model({.layers = {784, 6, 10}, .dropout = 0.5}, 3);
  const Evaluation all = evaluate(*model, set, LossKind::cross_entropy);
  EXPECT_TRUE(model->is_training());
  EXPECT_EQ(all.classes, 10);
  ASSERT_EQ(all.predictions.size(), 2100u);
  ASSERT_EQ(all.outputs.size(), 21000u);
  const std::vector<std::int32_t> labels = set.labels.to_vector<std::int32_t>();
  const std::vector<float> probability = probabilities(all.outputs, 10, LossKind::cross_entropy);
  double loss = 0, correct = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    loss -= std::log(probability[10 * i + static_cast<std::size_t>(labels[i])]);
    correct += all.predictions[i] == labels[i];
  }
  EXPECT_NEAR(all.loss, loss / 2100, 1e-4);
  EXPECT_EQ(all.accuracy, correct / 2100);
  for (const std::int64_t i : {0, 2047, 2048, 2099}) {
    const Evaluation one = evaluate(*model, set.slice(i, i + 1), LossKind::cross_entropy);
    for (std::size_t c = 0; c < 10; ++c)
      EXPECT_NEAR(one.outputs[c], all.outputs[10 * static_cast<std::size_t>(i) + c], 1e-5) << i;
  }
}

TEST(Evaluate, Observer_SeesEveryBatchButTheLast) {
  const ImageSet set = make_digits(4100, 4);
  const std::unique_ptr<Module> model = make_model({.layers = {784, 10}}, 3);
  std::vector<std::int64_t> seen, inner_seen;
  {
    const EvaluationObserver observer([&](std::int64_t done, std::int64_t images) {
      EXPECT_EQ(images, 4100);
      seen.push_back(done);
    });
    evaluate(*model, set, LossKind::cross_entropy);
    const EvaluationObserver inner([&](std::int64_t done, std::int64_t) { inner_seen.push_back(done); });
    evaluate(*model, set, LossKind::cross_entropy);
  }
  evaluate(*model, set, LossKind::cross_entropy);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{2048, 4096}));
  EXPECT_EQ(inner_seen, seen);
}

// A server computes batches of all sizes.
TEST(Evaluate, BatchesOfManySizes_KeepBoundedMemory) {
  const ImageSet set = make_digits(512, 4);
  const std::unique_ptr<Module> model = make_model({.model = "cnn", .channels = 1, .classes = 10}, 3);
  const ImageInput input{.flat = false, .height = 28, .width = 28, .channels = 1};
  const auto compute = [&](std::int64_t images) {
    const Tensor outputs =
        compute_outputs(*model, set.images.slice(0, 0, images).reshape({images, 28, 28, 1}), input);
    EXPECT_EQ(outputs.shape(), (Shape{images, 10}));
  };
  const std::int64_t largest = next_evaluation_batch(set.count(), input, cpu_device);
  EXPECT_EQ(next_evaluation_batch(largest - 1, input, cpu_device), largest / 2);
  compute(largest);
  release_cached_memory(cpu_device);
  compute(largest);
  const std::int64_t once = pool_statistics(cpu_device).bytes_cached;
  for (std::int64_t images = 1; images < largest; images += 1 + images / 7) compute(images);
  EXPECT_LE(pool_statistics(cpu_device).bytes_cached, 5 * once / 2);
}

TEST(Evaluate, EmptySet_GivesNaN) {
  const std::unique_ptr<Module> model = make_model({.layers = {784, 10}}, 3);
  EXPECT_TRUE(std::isnan(evaluate(*model, ImageSet{}, LossKind::mse).accuracy));
  EXPECT_TRUE(std::isnan(Evaluator(*model, ImageSet{}, LossKind::mse).run().accuracy));
}

TEST(Evaluate, Probabilities_SumToOne) {
  EXPECT_EQ(probabilities({0, 0, 0, 0}, 2, LossKind::cross_entropy), (std::vector<float>(4, 0.5f)));
  EXPECT_EQ(probabilities({0.25f, 0.25f, 0.75f, 0.25f}, 2, LossKind::mse),
            (std::vector<float>{0.5f, 0.5f, 0.75f, 0.25f}));
}

class EvaluatorOnDevice : public testing::TestWithParam<Device> {};

// Expects the bits of evaluate(), which captures nothing, before and after a run of the evaluator.
void expect_same_as_evaluate(Evaluator& evaluator, Module& model, const ImageSet& set,
                             const TrainingTask& task) {
  const auto plain = [&] { return evaluate(model, set, task.loss, task.input); };
  const Evaluation before = plain(), replayed = evaluator.run(), after = plain();
  EXPECT_EQ(replayed.outputs, before.outputs);
  EXPECT_EQ(replayed.outputs, after.outputs);
  EXPECT_EQ(replayed.predictions, before.predictions);
  EXPECT_EQ(replayed.loss, before.loss);
  EXPECT_EQ(replayed.accuracy, before.accuracy);
  EXPECT_EQ(replayed.classes, before.classes);
}

TEST_P(EvaluatorOnDevice, ChangedModel_EqualsEvaluate) {
  const ImageSet images = make_digits(20, 3), tested = make_digits(11, 4);
  for (const std::string name : {"cnn", "mlp"})
    for (const bool frozen : {false, true}) {
      if (frozen && name == "mlp") continue;
      SCOPED_TRACE(fmt::format("{} frozen {}", name, frozen));
      TrainOptions options{.model = name, .layers = {784, 12, 10}, .freeze = frozen};
      options.batch_size = 8;
      options.learning_rate = 0.05;
      TrainingState state(options, images, GetParam());
      Module& model = state.model();
      Evaluator evaluator(model, tested, options.loss, state.task().input);
      std::vector<double> losses;
      for (std::int64_t epoch = 0; epoch < 5; ++epoch) {  // running statistics change, also in frozen layers
        state.engine().run(epoch, 0, 3);
        state.engine().store();
        expect_same_as_evaluate(evaluator, model, tested, state.task());
        EXPECT_TRUE(model.is_training());
        losses.push_back(evaluator.run().loss);
      }
      for (std::size_t i = 1; i < losses.size(); ++i) EXPECT_NE(losses[i], losses[i - 1]);

      NamedTensors others;
      for (const NamedTensor& each : TrainingState(options, images, cpu_device).model().state_dict())
        others.push_back({each.name, each.tensor.clone()});
      model.load_state_dict(others);
      expect_same_as_evaluate(evaluator, model, tested, state.task());
      model.to(cpu_device);
      expect_same_as_evaluate(evaluator, model, tested, state.task());
      model.to(GetParam());
      for (int i = 0; i < 4; ++i) expect_same_as_evaluate(evaluator, model, tested, state.task());
    }
}

TEST_P(EvaluatorOnDevice, SeveralBatches_EqualEvaluate) {
  const ImageSet set = make_digits(2100, 4);
  TrainingState state(TrainOptions{.layers = {784, 6, 10}}, set, GetParam());
  Evaluator evaluator(state.model(), set, LossKind::cross_entropy, state.task().input);
  for (int i = 0; i < 4; ++i) expect_same_as_evaluate(evaluator, state.model(), set, state.task());
}

TEST_P(EvaluatorOnDevice, ChangedPrecision_EqualsEvaluate) {
  const ImageSet images = make_digits(9, 3);
  TrainingState state(TrainOptions{.model = "cnn"}, images, GetParam());
  Evaluator evaluator(state.model(), images, LossKind::cross_entropy, state.task().input);
  for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::tf32}) {
    const MatmulPrecisionScope scope(precision);
    for (int i = 0; i < 4; ++i) expect_same_as_evaluate(evaluator, state.model(), images, state.task());
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, EvaluatorOnDevice, testing::ValuesIn(test_devices()), device_name);

TEST(Predict, IdAndLabel_AreFileNameAndClass) {
  const std::vector<std::string> classes{"cleaned", "dirty"};
  EXPECT_EQ(id_label_csv({{.path = "test/0001.jpg", .chosen = 1, .probabilities = {0.1f, 0.9f}},
                          {.path = "a,b.png", .chosen = 0, .probabilities = {0.9f, 0.1f}},
                          {.path = "test/bad.jpg", .error = "damaged"}},
                         classes),
            "id,label\n0001,dirty\n\"a,b\",cleaned\nbad,\n");
}

TEST(Predict, ClassOfFolder_IsTheFolderOfTheFile) {
  const std::vector<std::string> classes{"cleaned", "dirty"};
  EXPECT_EQ(class_of_folder("test/dirty/1.jpg", classes), 1u);
  EXPECT_EQ(class_of_folder("cleaned/1.jpg", classes), 0u);
  EXPECT_EQ(class_of_folder("dirty/test/1.jpg", classes), std::nullopt);
  EXPECT_EQ(class_of_folder("dirty", classes), std::nullopt);
}

TEST(Predict, PredictionsAsCsv) {
  const std::vector<std::string> classes{"a,b", "c"};
  std::vector<Prediction> rows{{.path = "x \"y\".png", .chosen = 1, .probabilities = {0.25f, 0.75f}}};
  EXPECT_EQ(predictions_csv(rows, classes),
            "path,class,probability,\"a,b\",c\n\"x \"\"y\"\".png\",c,0.750000,0.250000,0.750000\n");
  rows.push_back({.path = "b\n.png", .error = "cut short, it seems"});
  EXPECT_EQ(predictions_csv(rows, classes),
            "path,class,probability,\"a,b\",c,error\n"
            "\"x \"\"y\"\".png\",c,0.750000,0.250000,0.750000,\n"
            "\"b\n.png\",,,,,\"cut short, it seems\"\n");
  EXPECT_EQ(error_count(rows), 1u);
}

}  // namespace
}  // namespace tandem
