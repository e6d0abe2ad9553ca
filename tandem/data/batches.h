// The samples of each batch as a function of the seed, the epoch and the position. No state is kept, so a run
// resumed in the middle of an epoch gets the same batches.
#pragma once

#include <cstdint>

#include "tandem/tensor/tensor.h"

namespace tandem {

/// How a data set is divided into batches.
struct BatchPlan {
  std::int64_t samples = 0;  ///< number of samples in the data set
  std::int64_t batch_size = 16;
  /// 0: an epoch is one pass over the data, and its last batch holds the remainder. Otherwise an epoch has
  /// this many full batches, and passes over the data follow each other.
  std::int64_t batches_per_epoch = 0;
  std::uint64_t seed = 1;
  bool shuffle = true;  ///< another order in each epoch; false: always the stored order
  /// What stands for an image that cannot be read: the next one of the pass, as for training, or a black
  /// image with the label −1, as for evaluation.
  bool replace_unreadable = true;

  /// Batches per epoch.
  std::int64_t steps() const {
    return batches_per_epoch > 0 ? batches_per_epoch : (samples + batch_size - 1) / batch_size;
  }
  /// Samples per epoch, counting repeated ones.
  std::int64_t positions() const { return batches_per_epoch > 0 ? batches_per_epoch * batch_size : samples; }
  /// The size of the batch of a step.
  std::int64_t rows(std::int64_t step) const {
    const std::int64_t left = positions() - step * batch_size;
    return left < batch_size ? left : batch_size;
  }
};

/// Throws Error unless there is at least one sample and the sizes are in range.
void check_batch_plan(const BatchPlan& plan);

/// Fills `out` (i32, contiguous, any device) with the samples at positions first, first + 1, … of an epoch.
/// Each further pass over the data within an epoch has another order. Gives the same samples on every device.
void fill_order(const BatchPlan& plan, std::int64_t epoch, std::int64_t first, const Tensor& out);

}  // namespace tandem
