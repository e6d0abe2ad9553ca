// The folder of a run: what is in it, and the checkpoint a run goes on from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/write_file.h"
#include "tandem/report/training_report.h"
#include "tandem/train/engine.h"
#include "tandem/train/options.h"
#include "tandem/train/training_state.h"

namespace tandem {

struct RunFolder {
  std::filesystem::path path;

  std::filesystem::path config() const { return path / "config.toml"; }
  std::filesystem::path log() const { return path / "log.csv"; }
  std::filesystem::path events() const { return path / "events.out.tfevents.tandem"; }
  std::filesystem::path best() const { return path / "best.safetensors"; }
  std::filesystem::path checkpoint() const { return path / "last.ckpt"; }
  std::filesystem::path bad_images() const { return path / "bad-images.csv"; }
  std::filesystem::path report() const { return path / "report.html"; }
};

// Error where `path` holds something and the run is not to be resumed. Changes nothing.
void check_run_folder(const std::filesystem::path& path, bool resume);

// Makes the folder. An empty path becomes the first of runs/<data>-<model>-1, -2, … that is not there.
RunFolder make_run_folder(const std::filesystem::path& path, const std::string& data,
                          const std::string& model);

// Takes away what a killed run was writing when it died (core/write_file.h).
void remove_half_written(const RunFolder& folder);

// Where a run stands.
struct RunPosition {
  std::int64_t epoch = 0, step = 0;  // the next to be run, from 0
  StepSums sums;                     // of the epoch under way
  double epoch_seconds = 0;          // spent training in it
  double total_seconds = 0;          // spent in the run
  double waited_seconds = 0;         // of epoch_seconds, for images that were not ready
  std::vector<EpochRecord> records;  // of the epochs that are over

  // The record of the best accuracy, the first of equals; null without records.
  const EpochRecord* best() const;
};

// Whether all weights and optimiser states are finite numbers. A state that is not must not be saved.
bool is_finite(const TrainingState& state);

// The model and optimiser must be up to date (Engine::store). On any failure the checkpoint that was there
// stays.
void save_checkpoint(const RunFolder& folder, const TrainOptions& options, const TrainingState& state,
                     const RunPosition& position);
// The same in two steps (core/write_file.h); the state must not change between them.
PendingFile start_checkpoint(const RunFolder& folder, const TrainOptions& options, const TrainingState& state,
                             const RunPosition& position);

// Nothing where there is no checkpoint. One of another configuration is refused with the keys that differ;
// only `from`, `device` and, where no rate depends on it, `epochs` may.
std::optional<RunPosition> load_checkpoint(const RunFolder& folder, const TrainOptions& options,
                                           TrainingState& state);

}  // namespace tandem
