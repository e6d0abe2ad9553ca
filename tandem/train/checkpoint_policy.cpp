#include "tandem/train/checkpoint_policy.h"

#include <algorithm>
#include <utility>

namespace tandem {

CheckpointPolicy::CheckpointPolicy(const RunFolder& folder, TomlTable config, const Module& model,
                                   double save_every_seconds, Timeline* timeline)
    : folder_(folder),
      config_(std::move(config)),
      save_every_seconds_(save_every_seconds),
      timeline_(timeline) {
  for (const NamedTensor& each : model.state_dict())
    model_bytes_ += each.tensor.numel() * static_cast<std::int64_t>(size_of(each.tensor.dtype()));
}

bool CheckpointPolicy::is_due_after_epoch() const {
  constexpr std::int64_t small_bytes = 4 << 20;
  constexpr double max_share = 0.05, bytes_per_ms = 1e6;
  const double cost_ms = std::max(save_ms_, 2 * static_cast<double>(model_bytes_) / bytes_per_ms);
  return model_bytes_ <= small_bytes || since_save_.elapsed_ms() * max_share >= cost_ms;
}

void CheckpointPolicy::keep_best(const Module& model, ModelInfo info) {
  pending_best_ = PendingBest{.weights = {}, .info = std::move(info)};
  for (const NamedTensor& each : model.state_dict())
    pending_best_->weights.push_back({each.name, each.tensor.clone()});
}

void CheckpointPolicy::write(const TrainingState& state, const RunPosition& position,
                             const CheckpointTexts& texts) {
  const Stopwatch watch;
  std::optional<PendingFile> checkpoint;
  const auto start = [&] { checkpoint.emplace(start_checkpoint(folder_, config_, state, position, texts)); };
  if (pending_best_) {
    const TimelineSpan span(timeline_, "save best model", {});
    start();  // both files are written at the same time, the larger one first
    start_model(folder_.best(), pending_best_->weights, pending_best_->info).finish();
    pending_best_.reset();
  }
  const TimelineSpan span(timeline_, "save checkpoint", {});
  if (!checkpoint) start();
  checkpoint->finish(last_damaged_ ? std::filesystem::path() : folder_.previous());
  changed_ = last_damaged_ = false;
  since_save_ = {};
  save_ms_ = watch.elapsed_ms();
}

}  // namespace tandem
