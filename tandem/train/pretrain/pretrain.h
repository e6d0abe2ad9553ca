// Contrastive pretraining (Chen et al. 2020, SimCLR) of a backbone without labels: two random views of an
// image shall have similar embeddings, those of different images shall not. The images are rendered scenes,
// which need no photographs at all, or photographs of one's own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tandem/report/pretrain_record.h"
#include "tandem/train/pretrain/options.h"
#include "tandem/train/progress_state.h"

namespace tandem {

struct PretrainCallbacks {
  std::function<void(const std::string& line)> on_message = {};
  std::function<void(const ProgressState& state)> on_progress = {};
  /// Called between steps; a signal number other than 0 ends the run, which is saved.
  std::function<int()> stop_signal = {};
};

struct PretrainResult {
  std::filesystem::path folder;
  std::filesystem::path weights;  ///< of the backbone, for `tandem train --pretrained`; empty: not finished
  std::vector<PretrainRecord> records;  ///< of the whole run
  double seconds = 0;                   ///< of training, in all parts of the run
  int stopped_by = 0;                   ///< what stop_signal returned, if it ended the run
};

/// Writes into the run folder: config.toml, log.csv, last.ckpt, report.html and, at the end,
/// backbone.safetensors with the averaged weights. A run that was stopped or killed goes on from its
/// last checkpoint with options.resume and ends with the same bits. Throws Error, and leaves the last
/// checkpoint, for options out of range, a folder without images, and a loss that is not finite.
PretrainResult pretrain(PretrainOptions options, const PretrainCallbacks& callbacks = {});

/// The options of a run, from its folder, to resume it.
PretrainOptions read_pretrain_options(const std::filesystem::path& folder);

}  // namespace tandem
