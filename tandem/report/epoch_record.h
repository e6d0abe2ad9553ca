// What was measured in one epoch of a training run.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tandem {

/// The value of a figure that was not measured.
inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

/// A figure and its name.
struct NamedFigure {
  std::string name;
  double value = not_measured;
};

/// Losses are means over samples; accuracies are fractions from 0 to 1.
struct EpochRecord {
  int epoch = 0;  ///< from 1
  double train_loss = not_measured;
  double train_accuracy = not_measured;
  double val_loss = not_measured;
  double val_accuracy = not_measured;
  std::int64_t val_count = 0;           ///< images that the val figures were measured on
  double learning_rate = not_measured;  ///< of the last step
  double seconds = not_measured;        ///< of training, without validation
  double samples_per_second = not_measured;
  double waited_seconds = not_measured;  ///< the part of `seconds` spent waiting for images
  /// The part of `seconds` spent in the exchange between ranks, waiting included, on average over the ranks.
  /// Only for batches of several shards; not measured for what GPUs exchange by NCCL.
  double exchange_seconds = not_measured;
  /// The caller's, on the validation set; the same names in every epoch.
  std::vector<NamedFigure> metrics = {};
};

}  // namespace tandem
