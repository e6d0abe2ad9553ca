#include "tandem/train/engines/mlp_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "tandem/core/clock.h"
#include "tandem/core/parallel.h"
#include "tandem/optim/fused_update.h"
#include "tandem/train/engines/rank_exchange.h"
#include "tandem/train/engines/trace_mlp.h"

namespace tandem {

namespace {

// The factor from a pixel to the network's input, if the input is nothing but scaled pixels.
std::optional<float> pixel_scale_of(const ImageInput& input) {
  if (input.flat) return input.pixel_scale;
  const float stddev = input.norm.stddev[0];
  for (std::int64_t channel = 0; channel < input.channels; ++channel)
    if (input.norm.mean[channel] != 0 || input.norm.stddev[channel] != stddev) return std::nullopt;
  return 1.0f / (255.0f * stddev);
}

// A parameter's values and its optimizer states; nullopt if the optimizer does not update it.
std::optional<ParameterState> state_of(const Tensor& parameter, const FusedOptimizer& optimizer,
                                       const NamedTensors& states) {
  const auto per_parameter = static_cast<std::size_t>(optimizer.options().state_count());
  const auto found = std::ranges::find_if(optimizer.parameters(), [&](const NamedTensor& each) {
    return each.tensor.bytes() == parameter.bytes();
  });
  if (found == optimizer.parameters().end()) return std::nullopt;
  const auto at = static_cast<std::size_t>(found - optimizer.parameters().begin()) * per_parameter;
  ParameterState state{.value = parameter.data<float>()};
  if (per_parameter > 0) state.first = states[at].tensor.data<float>();
  if (per_parameter > 1) state.second = states[at + 1].tensor.data<float>();
  return state;
}

}  // namespace

std::optional<MlpTask> find_mlp(const TrainingTask& task) {
  FusedOptimizer* const optimizer = task.optimizer.fused();
  const std::optional<float> pixel_scale = pixel_scale_of(task.input);
  if (!optimizer || !pixel_scale || !task.mix.empty()) return std::nullopt;
  const ImageInput& input = task.input;
  const auto traced =
      trace_mlp(task.model,
                input.flat ? Dims{task.source.image_size()} : Dims{input.height, input.width, input.channels},
                task.loss);
  if (!traced || optimizer->parameters().size() != 2 * traced->layers.size()) return std::nullopt;
  MlpTask mlp{.shape = traced->shape, .layers = {}, .optimizer = optimizer, .pixel_scale = *pixel_scale};
  const NamedTensors states = optimizer->state();
  for (const TracedMlp::Layer& layer : traced->layers) {
    const auto weight = state_of(layer.weight, *optimizer, states);
    const auto bias = state_of(layer.bias, *optimizer, states);
    if (!weight || !bias) return std::nullopt;
    mlp.layers.push_back({.weight = *weight, .bias = *bias});
  }
  return mlp;
}

Tensor to_device(const std::vector<detail::StepHyperparameters<float>>& hyperparameters, Device device) {
  const auto count = static_cast<std::int64_t>(hyperparameters.size()) * detail::step_hyperparameter_count;
  const auto* const floats = reinterpret_cast<const float*>(hyperparameters.data());
  return Tensor::from(std::span(floats, static_cast<std::size_t>(count)), {count}, device);
}

namespace {

// Finds the fastest number of threads by timing real steps, whose results do not depend on it. Measures again
// from time to time, and when steps become slow: the load of the machine changes, and a thread without a CPU
// of its own delays all others at every barrier.
class ThreadTuner {
 public:
  // With `fixed` there is nothing to find: all threads are used.
  ThreadTuner(int max_threads, bool fixed) : max_threads_(std::max(max_threads, 1)) {
    candidates_.push_back({max_threads_});
    while (!fixed && candidates_.back().threads > 1)
      candidates_.push_back({(candidates_.back().threads + 1) / 2});
    restart();
  }

  int max_threads() const { return max_threads_; }
  bool settled() const { return active_ == 1 || round_ == rounds; }
  // The next steps(remaining) steps must run with threads() threads; then record() takes their duration.
  int threads() const { return candidates_[settled() ? 0 : next_].threads; }
  std::int64_t steps(std::int64_t remaining) const {
    return settled() ? remaining : std::min(remaining, trial_steps_);
  }
  void record(std::int64_t steps, double elapsed_ms) {
    const double step_ms = elapsed_ms / static_cast<double>(steps);
    if (settled()) return watch(steps, elapsed_ms);
    if (std::exchange(cold_, false)) {  // the first steps fill the caches and start the threads
      trial_steps_ = static_cast<std::int64_t>(std::clamp(trial_ms / step_ms, 1.0, 64.0));
      return;
    }
    candidates_[next_].step_ms = std::min(candidates_[next_].step_ms, step_ms);
    if (++next_ == active_) finish_round();
  }

 private:
  static constexpr int rounds = 4;
  static constexpr double trial_ms = 1.5, max_settled_ms = 3000, window_ms = 150, max_slowdown = 2;
  struct Candidate {
    int threads = 1;
    double step_ms = std::numeric_limits<double>::infinity();
  };

  // Compares the mean over a window, because a single slow step means nothing.
  void watch(std::int64_t steps, double elapsed_ms) {
    settled_ms_ += elapsed_ms;
    window_ms_ += elapsed_ms;
    window_steps_ += steps;
    if (window_ms_ < window_ms) return;
    const double step_ms = window_ms_ / static_cast<double>(window_steps_);
    window_ms_ = 0;
    window_steps_ = 0;
    if (settled_ms_ > max_settled_ms || step_ms > max_slowdown * candidates_.front().step_ms) restart();
  }

  void restart() {  // with all threads first
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Candidate& a, const Candidate& b) { return a.threads > b.threads; });
    for (Candidate& candidate : candidates_) candidate.step_ms = Candidate().step_ms;
    active_ = candidates_.size();
    next_ = 0;
    round_ = 0;
    cold_ = true;
    trial_steps_ = 2;
    settled_ms_ = 0;
    window_ms_ = 0;
    window_steps_ = 0;
  }
  // Sorts the fastest first and drops candidates that are much slower.
  void finish_round() {
    const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(active_);
    std::sort(candidates_.begin(), end,
              [](const Candidate& a, const Candidate& b) { return a.step_ms < b.step_ms; });
    const double max_ms = 1.5 * candidates_.front().step_ms;
    active_ = static_cast<std::size_t>(std::count_if(
        candidates_.begin(), end, [&](const Candidate& candidate) { return candidate.step_ms <= max_ms; }));
    next_ = 0;
    ++round_;
  }

  int max_threads_;
  std::vector<Candidate> candidates_;
  std::size_t active_ = 0, next_ = 0;
  int round_ = 0;
  bool cold_ = true;
  std::int64_t trial_steps_ = 2;
  double settled_ms_ = 0, window_ms_ = 0;
  std::int64_t window_steps_ = 0;
};

class CpuMlpEngine : public Engine {
 public:
  CpuMlpEngine(const TrainingTask& task, const MlpTask& mlp)
      : task_(task),
        layers_(mlp.layers),
        tuner_(task.threads > 0 ? task.threads : thread_count() - task.source.reserved_cpus(),
               task.threads > 0),
        network_(mlp.shape, task.batches().local_batch_size(), mlp.optimizer->options(), task.label_smoothing,
                 mlp.pixel_scale, tuner_.max_threads(),
                 {task.shards(), task.batches().part.own, task.group}) {
    for (std::size_t i = 0; i < layers_.size(); ++i) network_.load(i, layers_[i].weight, layers_[i].bias);
    for (Slot& slot : slots_) slot.images.resize(static_cast<std::size_t>(task.batches().local_batch_size()));
  }

  void add_steps(std::int64_t epoch, std::int64_t first, std::int64_t count, StepSums& sums) override {
    StepSums added;
    while (count > 0) {
      const std::int64_t batch = task_.batches().local_batch_size();
      const std::int64_t left = task_.batches().local_positions() - first * batch;
      // This rank may have no row of the last batch.
      const SourceBlock block =
          left > 0 ? task_.source.next_block(epoch, first * batch, tuner_.steps(count) * batch)
                   : SourceBlock();
      const std::int64_t steps = std::max<std::int64_t>((block.count + batch - 1) / batch, 1);
      const Stopwatch watch;
      run_with(tuner_.threads(), block, epoch, first, steps, task_.shards() > 1 ? added : sums);
      tuner_.record(steps, watch.elapsed_ms());
      first += steps;
      count -= steps;
    }
    sums += task_.group ? sum_over_ranks(*task_.group, added) : added;
  }

  std::int64_t first_not_finite() const override { return finite_steps_; }

  void store() override {
    for (std::size_t i = 0; i < layers_.size(); ++i) network_.store(i, layers_[i].weight, layers_[i].bias);
  }

  std::string description() const override {
    const int max = tuner_.max_threads(), chosen = tuner_.threads();
    return tuner_.settled() && chosen < max
               ? fmt::format("perceptron on the CPU, {} of {} threads (faster)", chosen, max)
               : fmt::format("perceptron on the CPU, {} thread{}", max, max == 1 ? "" : "s");
  }

 private:
  struct Slot {  // one batch, filled by one thread while the others still process the previous one
    std::vector<const std::uint8_t*> images;
    MlpBatch batch;
  };

  // The block contains exactly the images of these steps.
  void run_with(int threads, const SourceBlock& block, std::int64_t epoch, std::int64_t first,
                std::int64_t count, StepSums& sums) {
    fill_step_hyperparameters(task_, epoch, first, count, hyperparameters_);
    const BatchPlan& plan = task_.batches();
    const std::uint8_t* const images = block.images;
    const std::int32_t* const samples = block.samples;
    const std::int32_t* const labels = block.labels;
    const std::int64_t image_size = task_.source.image_size();
    const auto fill = [&](std::int64_t step) {
      Slot& slot = slots_[step % 2];
      const std::int64_t begin = (step - first) * plan.local_batch_size();
      slot.batch = {.rows = plan.local_rows(step),
                    .batch_rows = plan.rows(step),
                    .images = slot.images.data(),
                    .labels = labels + begin};
      for (std::int64_t row = 0; row < slot.batch.rows; ++row)
        slot.images[static_cast<std::size_t>(row)] = images + samples[begin + row] * image_size;
    };
    fill(first);
    run_team(threads, [&](const TeamMember& member) {
      network_.load_batch(member, slots_[first % 2].batch, static_cast<int>(first % 2));
      if (member.index == 0 && count > 1) fill(first + 1);
      member.arrive_and_wait();
      for (std::int64_t step = first; step < first + count; ++step) {
        const bool more = step + 1 < first + count;
        network_.step(member, slots_[step % 2].batch, more ? &slots_[(step + 1) % 2].batch : nullptr,
                      static_cast<int>(step % 2), hyperparameters_[static_cast<std::size_t>(step - first)]);
        if (network_.failed()) return;
        if (member.index != 0) continue;
        sums.loss += network_.loss_sum();
        if (std::isfinite(sums.loss)) ++finite_steps_;
        sums.correct += network_.correct();
        sums.samples += slots_[step % 2].batch.rows;
        if (step + 2 < first + count) fill(step + 2);
      }
    });
    network_.throw_failure();
    task_.optimizer.set_step_count(task_.optimizer.step_count() + count);
  }

  TrainingTask task_;
  std::vector<LayerState> layers_;
  ThreadTuner tuner_;
  CpuMlp network_;
  std::int64_t finite_steps_ = 0;
  Slot slots_[2];
  std::vector<detail::StepHyperparameters<float>> hyperparameters_;
};

}  // namespace

template <>
std::unique_ptr<Engine> make_mlp_engine<Backend::cpu>(const TrainingTask& task) {
  const std::optional<MlpTask> mlp = find_mlp(task);
  if (!mlp) return nullptr;
  // Larger weights do not fit in the caches, and the general product, which packs its operands, is faster.
  constexpr std::int64_t max_weights = 1 << 20;
  const std::vector<std::int64_t>& sizes = mlp->shape.sizes;
  std::int64_t weights = 0;
  for (std::size_t i = 0; i < mlp->shape.layers(); ++i) weights += sizes[i] * sizes[i + 1];
  if (weights > max_weights) return nullptr;
  return std::make_unique<CpuMlpEngine>(task, *mlp);
}

}  // namespace tandem
