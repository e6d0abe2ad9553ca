#include "tandem/study/training_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tandem/core/check.h"
#include "tandem/nn/cnn.h"
#include "tandem/nn/mlp.h"
#include "tandem/ops/random.h"
#include "tandem/tensor/copy.h"
#include "tandem/train/engines/module_engine.h"

namespace tandem {
namespace {

std::unique_ptr<Module> make_model(const TrainingCase& training_case, std::uint64_t seed, Device device) {
  std::unique_ptr<Module> model;
  if (training_case.is_convolutional())
    model = std::make_unique<Cnn>(CnnOptions{.classes = TrainingCase::classes, .seed = seed});
  else
    model = make_mlp({.layers = training_case.layers, .seed = seed});
  model->to(device);
  return model;
}

// The tensors that training changes. batch norm also counts its batches, in an integer.
NamedTensors trained_tensors(const Module& model) {
  NamedTensors tensors = model.state_dict();
  std::erase_if(tensors, [](const NamedTensor& named) { return named.tensor.dtype() != DType::f32; });
  return tensors;
}

// Infinite when a value is not finite or the ratio undefined.
double relative(double difference, double whole) {
  if (difference == 0) return 0;
  const double ratio = difference / whole;
  return std::isfinite(ratio) ? ratio : std::numeric_limits<double>::infinity();
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  expect(a.size() == b.size());
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    squares += difference * difference;
  }
  return std::sqrt(squares);
}

}  // namespace

double step_tolerance(const TrainingCase& training_case) {
  return training_case.is_convolutional() ? 0.03 : 0.003;
}

double step_error(const TrainedStep& expected, const TrainedStep& result) {
  expect(result.after.size() == expected.after.size());
  double error = relative(std::abs(result.loss - expected.loss), std::abs(expected.loss));
  for (std::size_t i = 0; i < expected.after.size(); ++i)
    error = std::max(error, relative(distance(result.after[i], expected.after[i]),
                                     distance(expected.after[i], expected.before[i])));
  return error;
}

ImageSet random_training_images(std::uint64_t seed) {
  ImageSet set;
  set.images = random_integers({TrainingCase::samples, TrainingCase::side, TrainingCase::side, 1}, 0, 256,
                               {.seed = seed, .stream = 0, .dtype = DType::u8});
  set.labels = random_integers({TrainingCase::samples}, 0, TrainingCase::classes,
                               {.seed = seed, .stream = 1, .dtype = DType::i32});
  set.classes.resize(TrainingCase::classes);
  return set;
}

CaseTraining::CaseTraining(const TrainingCase& training_case, const ImageSet& images, std::uint64_t seed,
                           EngineKind kind, int threads)
    : kind_(kind),
      model_(make_model(training_case, seed, images.images.device())),
      optimizer_(model_->parameters(), {}, 0.1),
      source_(images, {.samples = images.count(), .batch_size = training_case.batch_size, .seed = seed}),
      task_{.model = *model_,
            .optimizer = optimizer_,
            .source = source_,
            .input = {.flat = !training_case.is_convolutional(),
                      .height = TrainingCase::side,
                      .width = TrainingCase::side,
                      .channels = 1},
            .threads = threads} {
  if (kind == EngineKind::best)
    engine_ = make_engine(task_);
  else
    engine_ = std::make_unique<ModuleEngine>(task_);
}

Weights CaseTraining::weights() const {
  Weights values;
  for (const NamedTensor& named : trained_tensors(*model_)) values.push_back(named.tensor.to_vector<float>());
  return values;
}

TrainedStep CaseTraining::run_step(std::int64_t step) {
  TrainedStep trained{.loss = 0, .before = weights(), .after = {}};
  trained.loss = engine_->run(0, step, 1).loss;
  engine_->store();
  trained.after = weights();
  return trained;
}

TrainedStep CaseTraining::run_step(std::int64_t step, const Weights& before) {
  expect(kind_ == EngineKind::unfused);
  const NamedTensors tensors = trained_tensors(*model_);
  expect(tensors.size() == before.size());
  for (std::size_t i = 0; i < tensors.size(); ++i)
    copy_into(tensors[i].tensor, Tensor::from(before[i], tensors[i].tensor.shape()));
  return run_step(step);
}

double training_error(CaseTraining& training, CaseTraining& reference) {
  double error = 0;
  for (std::int64_t step = 0; step < std::min(checked_steps, training.batches().steps()); ++step) {
    const TrainedStep result = training.run_step(step);
    error = std::max(error, step_error(reference.run_step(step, result.before), result));
  }
  return error;
}

}  // namespace tandem
