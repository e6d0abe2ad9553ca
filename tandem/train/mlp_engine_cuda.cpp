#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tandem/tensor/copy.h"
#include "tandem/train/layered_mlp.h"
#include "tandem/train/mlp_engine.h"
#include "tandem/train/resident_mlp.h"

namespace tandem {
namespace {

class ResidentEngine : public Engine {
 public:
  ResidentEngine(const TrainingTask& task, const MlpShape& shape, const ResidentPlan& plan)
      : task_(task), plan_(plan), device_(task.source.device()) {
    most_steps_ = std::min<std::int64_t>(task.batches().steps(),
                                         std::max<std::int64_t>(1, most_positions / plan.batch));
    const auto make = [&](std::int64_t count, DType dtype) { return Tensor::empty({count}, dtype, device_); };
    exchange_ = make(static_cast<std::int64_t>(plan.exchange_floats()), DType::f32);
    counters_ = make((plan.groups + plan.slices) * 32, DType::i32);
    losses_ = make(plan.slices, DType::f64);
    correct_ = make(plan.slices, DType::i64);
    const std::vector<LayerValues> layers = layer_values(task);
    const auto values = [](const TrainedValues& from) {
      return ResidentWeights{.value = from.value, .first = from.first, .second = from.second};
    };
    run_ = {.weight1 = values(layers[0].weight),
            .bias1 = values(layers[0].bias),
            .weight2 = values(layers[1].weight),
            .bias2 = values(layers[1].bias),
            .scale = task.input.pixel_scale,
            .activation = shape.activation,
            .loss = shape.loss,
            .rule = task.optimizer.options(),
            .exchange = exchange_.data<float>(),
            .counters = reinterpret_cast<unsigned*>(counters_.data<std::int32_t>()),
            .loss_sums = losses_.data<double>(),
            .correct = correct_.data<std::int64_t>()};
  }

  StepSums run(std::int64_t epoch, std::int64_t first, std::int64_t count) override {
    clear(losses_);
    clear(correct_);
    StepSums sums;
    for (const std::int64_t end = first + count; first < end;) {
      const std::int64_t samples = start(epoch, first, std::min(end - first, most_steps_));
      sums.samples += samples;
      first += (samples + plan_.batch - 1) / plan_.batch;
    }
    task_.optimizer.set_step_count(task_.optimizer.step_count() + count);
    const std::vector<double> losses = losses_.to_vector<double>();
    const std::vector<std::int64_t> correct = correct_.to_vector<std::int64_t>();
    sums.loss = std::accumulate(losses.begin(), losses.end(), 0.0);
    sums.correct = std::accumulate(correct.begin(), correct.end(), std::int64_t{0});
    return sums;
  }

  void store() override {}  // between runs the weights lie where the model has them

  std::string description() const override {
    return fmt::format("perceptron resident on {}, {} blocks", device_.to_string(), plan_.blocks());
  }

 private:
  static constexpr std::int64_t most_positions = 1 << 20;

  // Starts as many steps as the source has images for, at most `most`, and returns their number of samples.
  std::int64_t start(std::int64_t epoch, std::int64_t first, std::int64_t most) {
    const SourceBlock block = task_.source.take(epoch, first * plan_.batch, most * plan_.batch);
    run_.positions = block.count;
    run_.steps = (block.count + plan_.batch - 1) / plan_.batch;
    numbers_of_steps(task_, epoch, first, run_.steps, numbers_);
    const Tensor numbers = to_device(numbers_, device_);
    clear(counters_);
    run_.images = block.images;
    run_.samples = block.samples;
    run_.labels = block.labels;
    run_.numbers = reinterpret_cast<const UpdateNumbers<float>*>(numbers.data<float>());
    run_resident(plan_, run_, current_stream(device_));
    return block.count;
  }

  TrainingTask task_;
  ResidentPlan plan_;
  Device device_;
  std::int64_t most_steps_ = 0;
  Tensor exchange_, counters_, losses_, correct_;
  ResidentRun run_;
  std::vector<UpdateNumbers<float>> numbers_;
};

}  // namespace

template <>
std::unique_ptr<Engine> make_mlp_engine<Backend::cuda>(const TrainingTask& task) {
  const auto shape = perceptron_shape(task.model, task.loss);
  if (!shape || shape->sizes.front() != task.source.image_size()) return nullptr;
  constexpr std::int64_t most = 1 << 16;
  const bool may_fit = shape->layers() == 2 && task.label_smoothing == 0 && shape->sizes[0] <= most &&
                       shape->sizes[1] <= most && task.batches().batch_size <= most;
  if (may_fit) {
    const ResidentPlan plan =
        plan_resident(static_cast<int>(shape->sizes[0]), static_cast<int>(shape->sizes[1]),
                      static_cast<int>(shape->sizes[2]), static_cast<int>(task.batches().batch_size),
                      task.optimizer.options().state_count(), resident_limits(task.source.device()));
    if (plan.groups > 0) return std::make_unique<ResidentEngine>(task, *shape, plan);
  }
  return make_layered_engine(task, *shape);
}

}  // namespace tandem
