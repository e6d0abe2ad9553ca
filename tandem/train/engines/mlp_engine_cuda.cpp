#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tandem/tensor/copy.h"
#include "tandem/train/engines/layered_mlp.h"
#include "tandem/train/engines/mlp_engine.h"
#include "tandem/train/engines/resident_mlp.h"

namespace tandem {
namespace {

class ResidentEngine : public Engine {
 public:
  ResidentEngine(const TrainingTask& task, const MlpTask& mlp, const detail::ResidentPlan& plan)
      : task_(task), plan_(plan), device_(task.source.device()) {
    max_steps_ =
        std::min<std::int64_t>(task.batches().steps(), std::max<std::int64_t>(1, max_positions / plan.batch));
    const auto make = [&](std::int64_t count, DType dtype) { return Tensor::empty({count}, dtype, device_); };
    exchange_ = make(static_cast<std::int64_t>(plan.exchange_floats()), DType::f32);
    counters_ = make((plan.groups + plan.slices) * 32, DType::i32);
    losses_ = make(plan.slices, DType::f64);
    correct_ = make(plan.slices, DType::i64);
    const std::vector<LayerState>& layers = mlp.layers;
    const auto values = [](const ParameterState& from) {
      return detail::ResidentWeights{.value = from.value, .first = from.first, .second = from.second};
    };
    run_ = {.weight1 = values(layers[0].weight),
            .bias1 = values(layers[0].bias),
            .weight2 = values(layers[1].weight),
            .bias2 = values(layers[1].bias),
            .scale = mlp.pixel_scale,
            .activation = mlp.shape.activation,
            .loss = mlp.shape.loss,
            .rule = mlp.optimizer->options(),
            .exchange = exchange_.data<float>(),
            .counters = reinterpret_cast<unsigned*>(counters_.data<std::int32_t>()),
            .loss_sums = losses_.data<double>(),
            .correct = correct_.data<std::int64_t>()};
  }

  void add_steps(std::int64_t epoch, std::int64_t first, std::int64_t count, StepSums& sums) override {
    clear(losses_);
    clear(correct_);
    for (const std::int64_t end = first + count; first < end;) {
      const std::int64_t samples = start(epoch, first, std::min(end - first, max_steps_));
      sums.samples += samples;
      first += (samples + plan_.batch - 1) / plan_.batch;
    }
    task_.optimizer.set_step_count(task_.optimizer.step_count() + count);
    const std::vector<double> losses = losses_.to_vector<double>();
    const std::vector<std::int64_t> correct = correct_.to_vector<std::int64_t>();
    sums.loss = std::accumulate(losses.begin(), losses.end(), sums.loss);
    sums.correct = std::accumulate(correct.begin(), correct.end(), sums.correct);
  }

  void store() override {}  // each run writes the weights back to the model

  std::string description() const override {
    return fmt::format("perceptron resident on {}, {} blocks", device_.to_string(), plan_.blocks());
  }

 private:
  static constexpr std::int64_t max_positions = 1 << 20;

  // Starts as many steps as the next block of the source has images for, at most `max_count`. Returns the
  // number of samples.
  std::int64_t start(std::int64_t epoch, std::int64_t first, std::int64_t max_count) {
    const SourceBlock block = task_.source.next_block(epoch, first * plan_.batch, max_count * plan_.batch);
    run_.positions = block.count;
    run_.steps = (block.count + plan_.batch - 1) / plan_.batch;
    fill_step_hyperparameters(task_, epoch, first, run_.steps, hyperparameters_);
    const Tensor hyperparameters = to_device(hyperparameters_, device_);
    clear(counters_);
    run_.images = block.images;
    run_.samples = block.samples;
    run_.labels = block.labels;
    run_.hyperparameters =
        reinterpret_cast<const detail::StepHyperparameters<float>*>(hyperparameters.data<float>());
    detail::run_resident(plan_, run_, current_stream(device_));
    return block.count;
  }

  TrainingTask task_;
  detail::ResidentPlan plan_;
  Device device_;
  std::int64_t max_steps_ = 0;
  Tensor exchange_, counters_, losses_, correct_;
  detail::ResidentRun run_;
  std::vector<detail::StepHyperparameters<float>> hyperparameters_;
};

}  // namespace

template <>
std::unique_ptr<Engine> make_mlp_engine<Backend::cuda>(const TrainingTask& task) {
  const std::optional<MlpTask> mlp = find_mlp(task);
  if (!mlp) return nullptr;
  const std::vector<std::int64_t>& sizes = mlp->shape.sizes;
  constexpr std::int64_t max_size = 1 << 16;
  const bool may_fit = mlp->shape.layers() == 2 && task.label_smoothing == 0 && sizes[0] <= max_size &&
                       sizes[1] <= max_size && task.batches().batch_size <= max_size;
  if (may_fit) {
    const detail::ResidentPlan plan = detail::plan_resident(
        static_cast<int>(sizes[0]), static_cast<int>(sizes[1]), static_cast<int>(sizes[2]),
        static_cast<int>(task.batches().batch_size), mlp->optimizer->options().state_count(),
        detail::resident_limits(task.source.device()));
    if (plan.groups > 0) return std::make_unique<ResidentEngine>(task, *mlp, plan);
  }
  return make_layered_engine(task, *mlp);
}

}  // namespace tandem
