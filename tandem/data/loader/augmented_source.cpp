#include "tandem/data/loader/augmented_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tandem/augment/augment.h"
#include "tandem/core/check.h"
#include "tandem/core/parallel.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"

namespace tandem {
namespace {

// Positions per block: enough to hide the launch overhead, few enough that the first block is ready soon, and
// on the CPU that it stays in the caches.
constexpr std::int64_t copied_positions = 8192, augmented_positions = 65536, cpu_positions = 4096;
constexpr std::int64_t max_block_bytes = std::int64_t{256} << 20;

std::int64_t positions_of(const BatchPlan& plan, std::int64_t wanted, std::int64_t image_size) {
  return block_positions(plan, std::min(wanted, std::max<std::int64_t>(1, max_block_bytes / image_size)));
}

std::vector<std::int32_t> iota_indices(std::int64_t count) {
  std::vector<std::int32_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

std::string describe(const LoaderOptions& options) {
  if (options.workers == 0) return "on the CPU, between the steps";
  const bool threads = options.kind == WorkerKind::thread;
  return fmt::format("by {} {}{} on the CPU", options.workers, threads ? "thread" : "process",
                     options.workers == 1 ? ""
                     : threads            ? "s"
                                          : "es");
}

LoaderOptions with_cpus(int cpus, LoaderOptions options) {
  options.cpus = cpus;
  return options;
}

bool contains(std::int64_t block_epoch, std::int64_t block_first, std::int64_t block_count,
              std::int64_t epoch, std::int64_t first) {
  return block_epoch == epoch && first >= block_first && first < block_first + block_count;
}

}  // namespace

HostPrefetcher::HostPrefetcher(std::shared_ptr<const detail::SampleStore> samples, const BatchPlan& plan,
                               const Transform& transform, const LoaderOptions& options)
    : BatchSource(plan),
      reserved_cpus_(
          std::min(options.workers, usable_cpus() / 8)),  // with few CPUs it is faster to share all
      description_(describe(options)),
      loader_(std::move(samples), plan, transform, with_cpus(reserved_cpus_, options)),
      indices_(iota_indices(loader_.block_images())) {}

SourceBlock HostPrefetcher::next_block(std::int64_t epoch, std::int64_t first, std::int64_t max_count) {
  if (!held_ || !contains(held_->epoch, held_->first, held_->count, epoch, first)) {
    if (held_) loader_.release(*held_);
    held_.reset();
    held_ = loader_.acquire(epoch, first);
  }
  const std::int64_t at = first - held_->first;
  return {.count = std::min(max_count, held_->count - at),
          .images = held_->images,
          .image_count = held_->count,
          .samples = indices_.data() + at,
          .labels = held_->labels + at};
}

DevicePrefetcher::DevicePrefetcher(std::shared_ptr<const detail::SampleStore> samples, const BatchPlan& plan,
                                   const Transform& transform, const LoaderOptions& options, Device device)
    : BatchSource(plan),
      description_(describe(options) + ", copied to " + device.to_string()),
      timeline_(options.timeline),
      loader_(std::move(samples), plan, transform, options),
      pinned_(loader_.memory(), device),
      copies_(device),
      blocks_{DeviceBlock(device), DeviceBlock(device)} {
  // Whole blocks of the loader.
  const std::int64_t loaded = loader_.block_images();
  const std::int64_t positions =
      std::max<std::int64_t>(1, positions_of(plan_, copied_positions, image_size()) / loaded) * loaded;
  for (DeviceBlock& block : blocks_) {
    block.images = Tensor::empty({positions, image_size()}, DType::u8, device);
    block.labels = Tensor::empty({positions}, DType::i32, device);
  }
  indices_ = Tensor::from(iota_indices(positions), {positions}, device);
}

SourceBlock DevicePrefetcher::next_block(std::int64_t epoch, std::int64_t first, std::int64_t max_count) {
  DeviceBlock* block = &blocks_[current_];
  if (!contains(block->epoch, block->first, block->count, epoch, first)) {
    DeviceBlock& before = *block;
    before.free.record(current_stream(device()));  // all steps that use it are queued on the stream
    current_ = 1 - current_;
    block = &blocks_[current_];
    const bool was_used = block->epoch >= 0;
    fill(*block, epoch, first);
    block->ready.block_stream(current_stream(device()));
    // The other block was used after this one, so both events have completed by now.
    if (was_used) waited_ms_ += std::max(0.0, before.ready.elapsed_ms_since(block->free));
  }
  const std::int64_t at = first - block->first;
  return {.count = std::min(max_count, block->count - at),
          .images = block->images.data<std::uint8_t>(),
          .image_count = block->count,
          .samples = indices_.data<std::int32_t>() + at,
          .labels = block->labels.data<std::int32_t>() + at};
}

// A slot of the ring is released when its copy is complete, just before the copy of the next slot is queued.
void DevicePrefetcher::fill(DeviceBlock& block, std::int64_t epoch, std::int64_t first) {
  if (block.epoch >= 0) block.free.block_stream(copies_);
  block.epoch = epoch;
  block.first = first;
  block.count = 0;
  std::optional<LoadedBlock> copied;
  const auto finish = [&] {
    if (!copied) return;
    const TimelineSpan span(timeline_, "wait for a copy", {"positions", epoch, copied->first, copied->count});
    block.ready.synchronize();
    loader_.release(*copied);
  };
  while (first + block.count < plan_.local_positions() &&
         block.count + loader_.block_images() <= block.labels.numel()) {
    const LoadedBlock loaded = loader_.acquire(epoch, first + block.count);
    finish();
    const auto copy = [&](const Tensor& to, const void* from, std::int64_t item_bytes) {
      on_backend(device(), "loader", [&]<Backend B>() {
        copy_bytes<B>(to.bytes() + block.count * item_bytes, from,
                      static_cast<std::size_t>(loaded.count * item_bytes), copies_);
      });
    };
    Timeline::Mark begin = timeline_ ? timeline_->mark(copies_) : nullptr;
    copy(block.images, loaded.images, image_size());
    copy(block.labels, loaded.labels, sizeof(std::int32_t));
    if (timeline_)
      timeline_->add({TrackKind::copies, device().index}, "copy", std::move(begin), timeline_->mark(copies_),
                     device(), {"positions", epoch, loaded.first, loaded.count});
    block.ready.record(copies_);
    block.count += loaded.count;
    copied = loaded;
  }
  finish();
}

DeviceAugmentedImages::DeviceAugmentedImages(const ImageSet& images, const BatchPlan& plan,
                                             const Recipe& recipe, Timeline* timeline)
    : BatchSource(plan), images_(images), recipe_(recipe), timeline_(timeline) {
  const std::int64_t positions =
      positions_of(plan, device().is_cuda() ? augmented_positions : cpu_positions, images.image_size());
  const Shape& shape = images.images.shape();
  samples_ = Tensor::empty({positions}, DType::i32, device());
  labels_ = Tensor::empty({positions}, DType::i32, device());
  augmented_ = Tensor::empty({positions, shape[1], shape[2], shape[3]}, DType::u8, device());
  if (plan.balanced.classes > 0) keys_ = Tensor::empty({positions}, DType::i32, device());
  indices_ = Tensor::from(iota_indices(positions), {positions}, device());
}

std::string DeviceAugmentedImages::description() const {
  return device().is_cuda() ? "on " + device().to_string() : "on the CPU, between the steps";
}

SourceBlock DeviceAugmentedImages::next_block(std::int64_t epoch, std::int64_t first,
                                              std::int64_t max_count) {
  const std::int64_t count = std::min({samples_.numel(), max_count, plan_.local_positions() - first});
  expect(first % plan_.local_batch_size() == 0 && count > 0);
  const Tensor samples = samples_.slice(0, 0, count);
  const TimelineSpan span(device().is_cuda() ? nullptr : timeline_, "augment",
                          {"positions", epoch, first, count});
  fill_block(plan_, epoch, first, images_.labels, samples, labels_.slice(0, 0, count));
  const Tensor keys = keys_.defined() ? keys_.slice(0, 0, count) : Tensor();
  if (keys.defined()) fill_keys(plan_, epoch, first, keys);
  augment_batch(recipe_, plan_.transform_seed(), epoch, images_.images, samples,
                augmented_.slice(0, 0, count), keys);
  return {.count = count,
          .images = augmented_.data<std::uint8_t>(),
          .image_count = count,
          .samples = indices_.data<std::int32_t>(),
          .labels = labels_.data<std::int32_t>()};
}

}  // namespace tandem
