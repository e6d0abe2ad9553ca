// DataLoader: batches of tensors for a training loop written by hand.
//     DataLoader loader(dataset, {.batch_size = 64, .transform = Transform::parse("digits"), .workers = 4});
//     for (std::int64_t epoch = 0; epoch < 5; ++epoch)
//       for (const Batch& batch : loader.epoch(epoch)) …
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/augment/transform.h"
#include "tandem/data/dataset.h"
#include "tandem/data/loader/worker_kind.h"
#include "tandem/data/skipped_sample.h"
#include "tandem/device/device.h"
#include "tandem/ops/normalize.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

struct DataLoaderOptions {
  std::int64_t batch_size = 16;  ///< the last batch of an epoch may be smaller
  Transform transform = {};
  bool shuffle = true;     ///< another order in each epoch; false: always the stored order
  std::uint64_t seed = 1;  ///< of the order and of the transform's random arguments
  /// Threads or processes that prepare images while earlier batches are used. 0: they are prepared when they
  /// are needed, on all cores if the data set is in memory. A GPU transforms images itself where it can.
  int workers = 0;
  WorkerKind worker_kind = WorkerKind::thread;
  int prefetch = 0;  ///< blocks of images prepared ahead; 0: twice the workers
  Device device = cpu_device;
  std::int64_t batches_per_epoch = 0;                       ///< 0: each sample once per epoch
  PixelNorm norm = {};                                      ///< default: pixels from 0 to 1
  double worker_timeout_s = 60;                             ///< a worker without progress counts as hung
  std::function<void(const std::string&)> on_message = {};  ///< a worker was replaced, a sample is skipped
};

/// The tensors are the batch's own: they stay valid when the loop advances and when the loader is destroyed.
struct Batch {
  Tensor images;  ///< f32, (n, height, width, channels), normalized, on the loader's device
  /// i64, (n), on the loader's device. −1 for a photograph that cannot be read (its image is black), only
  /// without shuffling: with shuffling another one replaces it.
  Tensor labels;
  std::int64_t epoch = 0;
  std::int64_t step = 0;  ///< the batch's index in its epoch

  std::int64_t size() const { return labels.defined() ? labels.size(0) : 0; }
};

namespace detail {
class DataLoaderState;
}

/// The batches of one epoch, for a range-based for loop. Each begin() starts at the first batch. It keeps
/// what it needs of the loader alive.
class EpochRange {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = const Batch*;
    using reference = const Batch&;

    Iterator(std::shared_ptr<detail::DataLoaderState> state, std::int64_t epoch);
    const Batch& operator*() const { return batch_; }
    const Batch* operator->() const { return &batch_; }
    /// Loads the next batch. Throws Error as DataLoader says.
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& iterator, std::default_sentinel_t) { return iterator.at_end(); }

   private:
    bool at_end() const;
    void load();

    std::shared_ptr<detail::DataLoaderState> state_;
    Batch batch_;
  };

  EpochRange(std::shared_ptr<detail::DataLoaderState> state, std::int64_t epoch)
      : state_(std::move(state)), epoch_(epoch) {}
  Iterator begin() const { return {state_, epoch_}; }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::shared_ptr<detail::DataLoaderState> state_;
  std::int64_t epoch_;
};

/// Loads a data set batch by batch. The batches are a function of the data set, the options and the epoch;
/// the number and kind of workers do not change a bit, and fit() sees the same pixels. Any epoch can be read
/// in any order, also several at once; reading them one after the other is fast, because the next batches are
/// prefetched.
///
/// The constructor throws Error for an empty data set and for options out of range. An exception of the data
/// set, an image of another size without a transform that resizes and a label without a class are an Error
/// in the loop, with describe() of the sample. Used by one thread, the one that made it.
class DataLoader {
 public:
  /// The data set must outlive the loader, unless it is an ImageDataset or a PhotoDataset or is held by a
  /// std::shared_ptr.
  explicit DataLoader(const Dataset& dataset, const DataLoaderOptions& options = {});
  explicit DataLoader(const std::shared_ptr<const Dataset>& dataset, const DataLoaderOptions& options = {});
  /// A temporary data set is kept.
  template <class D>
  requires std::derived_from<D, Dataset> && std::move_constructible<D>
  explicit DataLoader(D&& dataset, const DataLoaderOptions& options = {})
      : DataLoader(std::shared_ptr<const Dataset>(std::make_shared<D>(std::forward<D>(dataset))), options) {}
  DataLoader(DataLoader&&) noexcept = default;
  DataLoader& operator=(DataLoader&&) noexcept = default;
  ~DataLoader() = default;

  /// The batches of an epoch, counted from 0.
  EpochRange epoch(std::int64_t epoch) const;
  /// Batches per epoch.
  std::int64_t size() const;
  /// Samples found to be unusable so far: photographs that cannot be read, samples that crashed workers.
  std::vector<SkippedSample> skipped() const;
  /// The total time that the loop has waited for images.
  double waited_ms() const;

 private:
  detail::DataLoaderState& state() const;

  std::shared_ptr<detail::DataLoaderState> state_;
};

}  // namespace tandem
