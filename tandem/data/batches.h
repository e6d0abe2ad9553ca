// The samples of each batch as a function of the seed, the epoch and the position. No state is kept, so a run
// resumed in the middle of an epoch gets the same batches.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tandem/core/index_range.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

/// The part of every batch that one rank gets. A batch is divided into `shards` parts of consecutive rows, as
/// even as possible, and a rank has consecutive shards. By default the part is the whole batch.
struct BatchPart {
  std::int64_t shards = 1;
  IndexRange own = {0, 1};  ///< the shards of this rank
  /// Each local batch begins with an extra row, for mixup and CutMix: the row before the first own one in the
  /// whole batch, where the last row comes before the first. Not for a part that is the whole batch.
  bool previous_row = false;

  constexpr bool is_whole() const { return own.begin == 0 && own.end == shards; }
  constexpr std::int64_t extra_rows() const { return previous_row ? 1 : 0; }
  friend constexpr bool operator==(const BatchPart&, const BatchPart&) = default;
};

/// The samples of every class that has some, for balanced sampling. It lives as long as its ClassLists.
struct ClassTable {
  const std::int32_t* samples = nullptr;  ///< class after class
  const std::int64_t* begin = nullptr;    ///< where each class begins in `samples`, and the end
  std::uint32_t classes = 0;              ///< 0: sampling is not balanced
};

/// The memory of a ClassTable.
class ClassLists {
 public:
  ClassLists() = default;  ///< without classes
  /// Of samples 0 … count − 1, whose labels are 0 or more.
  ClassLists(std::int64_t count, const std::function<std::int32_t(std::int64_t)>& label);

  ClassTable table() const {
    return begin_.empty()
               ? ClassTable()
               : ClassTable{samples_.data(), begin_.data(), static_cast<std::uint32_t>(begin_.size() - 1)};
  }

 private:
  std::vector<std::int32_t> samples_;
  std::vector<std::int64_t> begin_;
};

/// How a data set is divided into batches, and which part of every batch is loaded. Steps, rows and positions
/// are those of whole batches; those of the part are called local.
struct BatchPlan {
  std::int64_t samples = 0;  ///< number of samples in the data set
  std::int64_t batch_size = 16;
  /// 0: an epoch is one pass over the data, and its last batch holds the remainder. Otherwise an epoch has
  /// this many full batches, and passes over the data follow each other.
  std::int64_t batches_per_epoch = 0;
  std::uint64_t seed = 1;
  bool shuffle = true;  ///< another order in each epoch; false: always the stored order
  /// With classes, every group of as many consecutive positions as there are classes has one sample of each,
  /// in random order, and a class's samples are all used before one is used again. An epoch has as many
  /// positions as without.
  ClassTable balanced = {};
  /// What stands for an image that cannot be read: the next one of the pass, as for training, or a black
  /// image with the label −1, as for evaluation.
  bool replace_unreadable = true;
  BatchPart part = {};  ///< the samples at a position do not depend on it
  /// Which of several views of the samples: the order is the same, the random arguments of transforms differ.
  std::uint32_t view = 0;

  /// The seed of the transforms.
  constexpr std::uint64_t transform_seed() const { return seed + view * 0x9e3779b97f4a7c15u; }

  /// Batches per epoch.
  constexpr std::int64_t steps() const {
    return batches_per_epoch > 0 ? batches_per_epoch : (samples + batch_size - 1) / batch_size;
  }
  /// Samples per epoch, counting repeated ones.
  constexpr std::int64_t positions() const {
    return batches_per_epoch > 0 ? batches_per_epoch * batch_size : samples;
  }
  /// The size of the batch of a step.
  constexpr std::int64_t rows(std::int64_t step) const {
    const std::int64_t left = positions() - step * batch_size;
    return left < batch_size ? left : batch_size;
  }

  /// The part's rows of the batch of a step, without the extra row. May be empty for the remainder.
  constexpr IndexRange own_rows(std::int64_t step) const {
    return rows_of_shards(rows(step), part.shards, part.own);
  }
  /// The rows that are loaded for a full batch, with the extra row.
  constexpr std::int64_t local_batch_size() const {
    return rows_of_shards(batch_size, part.shards, part.own).count() + part.extra_rows();
  }
  /// The rows that are loaded for a step, with the extra row; 0 if the part has no rows of this batch.
  constexpr std::int64_t local_rows(std::int64_t step) const {
    const std::int64_t own = own_rows(step).count();
    return own > 0 ? own + part.extra_rows() : 0;
  }
  /// The rows that are loaded in an epoch. Local position p is row p % local_batch_size() of step
  /// p / local_batch_size().
  constexpr std::int64_t local_positions() const {
    return (steps() - 1) * local_batch_size() + local_rows(steps() - 1);
  }
  /// The position of the row at a local position.
  constexpr std::int64_t global_position(std::int64_t local) const {
    if (part.is_whole()) return local;
    const std::int64_t step = local / local_batch_size();
    const std::int64_t row = own_rows(step).begin + local % local_batch_size() - part.extra_rows();
    return step * batch_size + (row < 0 ? rows(step) - 1 : row);
  }
};

/// Throws Error unless there is at least one sample and the sizes and the part are in range.
void check_batch_plan(const BatchPlan& plan);

/// Fills `out` (i32, contiguous, any device) with the samples at the local positions first, first + 1, …
/// of an epoch. Each further pass over the data within an epoch has another order. Gives the same samples on
/// every device.
void fill_order(const BatchPlan& plan, std::int64_t epoch, std::int64_t first, const Tensor& out);

/// Fills `out` in the same way with what the random arguments of transforms depend on besides the seed and
/// the epoch: the sample, and in balanced sampling how often it was drawn before in the epoch.
void fill_keys(const BatchPlan& plan, std::int64_t epoch, std::int64_t first, const Tensor& out);

}  // namespace tandem
