#include "tandem/data/loader/data_loader.h"

#include <algorithm>
#include <limits>

#include "tandem/core/check.h"
#include "tandem/data/loader/make_source.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"
#include "tandem/ops/cast.h"
#include "tandem/ops/gather_kernel.h"

namespace tandem {

namespace detail {

// A source, and the block of it that is being read.
class DataLoaderState {
 public:
  DataLoaderState(const Dataset& dataset, const DataLoaderOptions& options) : norm_(options.norm) {
    std::shared_ptr<const SampleStore> samples = dataset.sample_store();
    const BatchPlan plan{.samples = samples->count(),
                         .batch_size = options.batch_size,
                         .batches_per_epoch = options.batches_per_epoch,
                         .seed = options.seed,
                         .shuffle = options.shuffle,
                         .replace_unreadable = options.shuffle};
    check_batch_plan(plan);
    check(std::all_of(std::begin(norm_.stddev), std::end(norm_.stddev), [](float x) { return x > 0; }),
          "[loader] expected standard deviations above 0 in norm");
    size_ = samples->image_size(options.transform);
    check(size_.channels <= max_image_channels, "[loader] expected images of at most {} channels, got {}",
          max_image_channels, size_.channels);
    LoaderOptions loader;
    loader.workers = options.workers;
    loader.kind = options.worker_kind;
    loader.prefetch = options.prefetch;
    loader.worker_timeout_s = options.worker_timeout_s;
    loader.on_message = options.on_message;
    check_loader_options(loader);
    source_ = make_source(std::move(samples), plan, options.transform, options.device, loader);
  }

  const BatchSource& source() const { return *source_; }

  Batch load(std::int64_t epoch, std::int64_t step) {
    const BatchPlan& plan = source_->plan();
    const std::int64_t first = step * plan.local_batch_size(), rows = plan.local_rows(step);
    if (epoch != epoch_ || first < first_ || first + rows > first_ + block_.count) {
      epoch_ = -1;  // if next_block() throws, the old block is gone
      block_ = source_->next_block(epoch, first, plan.local_positions() - first);
      epoch_ = epoch;
      first_ = first;
    }
    const Device device = source_->device();
    const std::int64_t at = first - first_;
    const Tensor images = Tensor::empty({rows, size_.height, size_.width, size_.channels}, DType::u8, device);
    const Tensor labels = Tensor::empty({rows}, DType::i32, device);
    on_backend(device, "loader", [&]<Backend B>() {
      const StreamView stream = current_stream(device);
      gather_rows_kernel<B>({.dtype = DType::i32,
                             .data = reinterpret_cast<const std::byte*>(block_.samples + at),
                             .count = rows,
                             .table_rows = block_.image_count},
                            images.bytes(), reinterpret_cast<const std::byte*>(block_.images), size_.bytes(),
                            stream);
      copy_bytes<B>(labels.bytes(), block_.labels + at, 4 * static_cast<std::size_t>(rows), stream);
    });
    return {.images = normalize_images(images, norm_),
            .labels = cast(labels, DType::i64),
            .epoch = epoch,
            .step = step};
  }

 private:
  PixelNorm norm_;
  ImageSize size_;
  std::unique_ptr<BatchSource> source_;
  SourceBlock block_;  // positions first_ … of epoch_; −1: none
  std::int64_t epoch_ = -1, first_ = 0;
};

}  // namespace detail

EpochRange::Iterator::Iterator(std::shared_ptr<detail::DataLoaderState> state, std::int64_t epoch)
    : state_(std::move(state)) {
  batch_.epoch = epoch;
  load();
}

bool EpochRange::Iterator::at_end() const {
  return batch_.step >= state_->source().plan().steps();
}

void EpochRange::Iterator::load() {
  if (at_end()) return;
  batch_.images = batch_.labels =
      Tensor();  // before the next batch is made, so that it can have their memory
  batch_ = state_->load(batch_.epoch, batch_.step);
}

EpochRange::Iterator& EpochRange::Iterator::operator++() {
  check(!at_end(), "[loader] expected a batch to advance from, got the end of epoch {}", batch_.epoch);
  ++batch_.step;
  load();
  return *this;
}

DataLoader::DataLoader(const Dataset& dataset, const DataLoaderOptions& options)
    : state_(std::make_shared<detail::DataLoaderState>(dataset, options)) {}

DataLoader::DataLoader(const std::shared_ptr<const Dataset>& dataset, const DataLoaderOptions& options) {
  check(dataset != nullptr, "[loader] expected a data set, got none");
  state_ = std::make_shared<detail::DataLoaderState>(*dataset, options);
}

detail::DataLoaderState& DataLoader::state() const {
  check(state_ != nullptr, "[loader] expected a loader, got one that was moved from");
  return *state_;
}

EpochRange DataLoader::epoch(std::int64_t epoch) const {
  constexpr std::int64_t max_epoch = std::numeric_limits<std::uint32_t>::max();
  state();
  check(epoch >= 0 && epoch <= max_epoch, "[loader] expected an epoch from 0 to {}, got {}", max_epoch,
        epoch);
  return {state_, epoch};
}

std::int64_t DataLoader::size() const {
  return state().source().plan().steps();
}

std::vector<SkippedSample> DataLoader::skipped() const {
  return state().source().skipped();
}

double DataLoader::waited_ms() const {
  return state().source().waited_ms();
}

}  // namespace tandem
