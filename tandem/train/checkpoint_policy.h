// When a run is saved, and what is saved: the checkpoint (last.ckpt; the one before it stays, as
// previous.ckpt) and the best model (best.safetensors).
#pragma once

#include <cstdint>
#include <optional>

#include "tandem/core/clock.h"
#include "tandem/data/loader/timeline.h"
#include "tandem/train/model_file.h"
#include "tandem/train/run_folder.h"

namespace tandem {

class CheckpointPolicy {
 public:
  // `config` is stored in every checkpoint. Saves are recorded on the timeline, if there is one.
  CheckpointPolicy(const RunFolder& folder, TomlTable config, const Module& model, double save_every_seconds,
                   Timeline* timeline);

  // Whether something is not saved yet.
  bool has_changes() const { return changed_; }
  // The state differs from the last checkpoint, or equals the one that was just loaded.
  void set_changed(bool changed) { changed_ = changed; }

  // The previous checkpoint was loaded: it stays until a new one is written.
  void set_last_damaged() { last_damaged_ = true; }

  // Within an epoch: whether the last save is save_every_seconds ago.
  bool is_due() const { return since_save_.elapsed_ms() >= 1000 * save_every_seconds_; }
  // After an epoch. Large models are not saved after every short epoch, which could take longer than
  // training.
  bool is_due_after_epoch() const;
  // Nothing to save: the time until the next save starts again.
  void postpone() { since_save_ = {}; }

  // Copies the weights; they are written with the next checkpoint.
  void keep_best(const Module& model, ModelInfo info);

  // Writes the best model if it is not written yet, then the checkpoint. The state must be stored and finite.
  // If the process is killed in between, the resumed run repeats the epochs since the last checkpoint and
  // writes the model again.
  void write(const TrainingState& state, const RunPosition& position, const CheckpointTexts& texts);

 private:
  struct PendingBest {  // a better model than best.safetensors, not written yet
    NamedTensors weights;
    ModelInfo info;
  };

  RunFolder folder_;
  TomlTable config_;
  double save_every_seconds_;
  Timeline* timeline_;
  std::int64_t model_bytes_ = 0;
  Stopwatch since_save_;
  double save_ms_ = 0;  // duration of the last save
  bool changed_ = true;
  bool last_damaged_ = false;
  std::optional<PendingBest> pending_best_;
};

}  // namespace tandem
