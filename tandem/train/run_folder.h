// The folder of a run: its files, and the checkpoint from which a run is resumed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/write_file.h"
#include "tandem/files/checkpoint.h"
#include "tandem/files/folder_lock.h"
#include "tandem/files/safetensors.h"
#include "tandem/report/training_report.h"
#include "tandem/train/engines/engine.h"
#include "tandem/train/options.h"
#include "tandem/train/training_state.h"

namespace tandem {

struct RunFolder {
  std::filesystem::path path;

  std::filesystem::path config() const { return path / "config.toml"; }
  std::filesystem::path log() const { return path / "log.csv"; }
  std::filesystem::path events() const { return path / "events.out.tfevents.tandem"; }
  std::filesystem::path steps() const { return path / "steps.csv"; }
  // In a folder of its own, because TensorBoard counts its steps and those of the epochs apart.
  std::filesystem::path step_events() const { return path / "steps" / "events.out.tfevents.tandem"; }
  std::filesystem::path best() const { return path / "best.safetensors"; }
  std::filesystem::path checkpoint() const { return path / "last.ckpt"; }
  std::filesystem::path previous() const { return path / "previous.ckpt"; }  // the checkpoint before the last
  std::filesystem::path data() const { return path / "data.json"; }  // what it trains on (data_list.h)
  std::filesystem::path status() const { return path / "status.json"; }
  std::filesystem::path bad_images() const { return path / "bad-images.csv"; }
  std::filesystem::path predictions() const { return path / "predictions.csv"; }  // of a cross-validation
  std::filesystem::path batch_sheet() const { return path / "batch.jpg"; }        // the first training images
  std::filesystem::path timeline() const { return path / "timeline.json"; }       // of a run with a trace
  std::filesystem::path report() const { return path / "report.html"; }
  std::filesystem::path report_json() const { return path / "report.json"; }
};

// Throws Error if `path` is not empty and the run is not resumed, and if another run writes to it.
void check_run_folder(const std::filesystem::path& path, bool resume);

// Creates the folder. An empty path becomes the first of runs/<data>-<model>-1, -2, … that does not exist.
RunFolder make_run_folder(const std::filesystem::path& path, const std::string& data,
                          const std::string& model);

// Locks the folder for a run, and removes temporary files that a killed run left behind. Throws an Error that
// names the process if another run holds the lock, and, as check_run_folder() does, if another run has
// written to it since it was checked.
FolderLock lock_run_folder(const RunFolder& folder, bool resume);

// The temporary files of core/write_file.h.
void remove_temporary_files(const RunFolder& folder);

// How far a run has got.
struct RunPosition {
  std::int64_t epoch = 0, step = 0;  // the next to run, from 0
  StepSums sums;                     // of the current epoch
  double epoch_seconds = 0;          // training time of the current epoch
  double total_seconds = 0;          // of the whole run
  double waited_seconds = 0;         // part of epoch_seconds spent waiting for images
  double exchange_seconds = 0;       // part of epoch_seconds in the exchange between ranks, on average
  std::vector<EpochRecord> records;  // of the finished epochs

  // The record with the best validation accuracy, the first of equal ones; null without records.
  const EpochRecord* best() const;
};

// Whether all weights, buffers and optimizer states are finite. Others must not be saved.
bool is_finite(const TrainingState& state);

// Texts stored in a checkpoint beside the configuration, by their keys.
using CheckpointTexts = std::map<std::string, std::string>;

// The model and optimizer must be up to date (Engine::store). On any failure the previous checkpoint stays.
// `config` and `texts` are stored with it.
void save_checkpoint(const RunFolder& folder, const TomlTable& config, const TrainingState& state,
                     const RunPosition& position, const CheckpointTexts& texts = {});
// The same in two steps (core/write_file.h); the state must not change between them.
PendingFile start_checkpoint(const RunFolder& folder, const TomlTable& config, const TrainingState& state,
                             const RunPosition& position, const CheckpointTexts& texts = {});

// Whether there is a checkpoint, damaged or not, or a previous one.
bool has_checkpoint(const RunFolder& folder);

// The number of epochs that the run of a checkpoint had finished.
std::int64_t finished_epochs(const TensorFile& checkpoint, const RunFolder& folder);

// The whole checkpoint, or the previous one (files/checkpoint.h); nullopt if there is none.
std::optional<NewestCheckpoint> read_run_checkpoint(const RunFolder& folder);

// Restores the state and returns the position. Throws Error, naming the keys that differ, if the checkpoint
// has another configuration; options that do not change the result may differ, and `epochs` if the
// learning-rate schedule does not depend on it. `metrics` are the names of EpochRecord::metrics. The number
// of shards may differ if `config` does not have it.
RunPosition restore_checkpoint(const TensorFile& file, const RunFolder& folder, const TomlTable& config,
                               TrainingState& state, const std::vector<std::string>& metrics = {});
// Both; nullopt if there is no checkpoint.
std::optional<RunPosition> load_checkpoint(const RunFolder& folder, const TomlTable& config,
                                           TrainingState& state,
                                           const std::vector<std::string>& metrics = {});

}  // namespace tandem
