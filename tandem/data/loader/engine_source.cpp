#include "tandem/data/loader/engine_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tandem/augment/photo_kernel.h"
#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/core/parallel.h"
#include "tandem/data/loader/sample_reader.h"
#include "tandem/device/driver.h"
#include "tandem/device/on_backend.h"

namespace tandem {
namespace {

constexpr std::int64_t block_images = 256, chunk_images = 16;
constexpr std::int64_t alignment = 256;  // of a photograph's pixels

std::int64_t image_bytes(const PhotoRecipe& recipe) {
  return std::int64_t{3} * recipe.height * recipe.width;
}

// Enough that neither the engines nor the trainer wait for each other, in at most 2 GiB if blocks are large.
int block_count(const BatchPlan& plan, const PhotoRecipe& recipe, const LoaderOptions& options) {
  constexpr std::int64_t max_bytes = std::int64_t{2} << 30;
  if (options.prefetch > 0) return options.prefetch + 2;
  const std::int64_t bytes = block_positions(plan, block_images) * image_bytes(recipe);
  return static_cast<int>(std::clamp<std::int64_t>(max_bytes / bytes, 4, 8));
}

Tensor iota_indices(std::int64_t count, Device device) {
  std::vector<std::int32_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return Tensor::from(indices, {count}, device);
}

void copy(void* to, const void* from, std::int64_t bytes, StreamView stream) {
  on_backend(stream.device, "photos",
             [&]<Backend B>() { copy_bytes<B>(to, from, static_cast<std::size_t>(bytes), stream); });
}

std::int64_t pixel_bytes(const PhotoFile& file) {
  return (3 * file.height() * file.width() + alignment - 1) / alignment * alignment;
}

}  // namespace

EngineDecodedPhotos::Decoder::Decoder(std::unique_ptr<JpegEngine> opened, Device device,
                                      std::int64_t positions, std::int64_t bytes)
    : engine(std::move(opened)),
      stream(device),
      pixels(static_cast<std::size_t>(bytes), stream),
      locations(static_cast<std::size_t>(positions) * sizeof(PhotoLocation), stream),
      keys(static_cast<std::size_t>(positions) * sizeof(std::int32_t), stream),
      transformed(device) {}

EngineDecodedPhotos::EngineDecodedPhotos(std::shared_ptr<const PhotoStore> photos, const BatchPlan& plan,
                                         const PhotoRecipe& recipe, const LoaderOptions& options,
                                         Device device, std::unique_ptr<JpegEngine> engine,
                                         const EngineLimits& limits)
    : BatchSource(plan),
      photos_(std::move(photos)),
      recipe_(recipe),
      epochs_(options.epochs),
      limits_(limits),
      timeline_(options.timeline),
      capacity_(block_positions(plan, block_images)),
      fetcher_(photos_, plan, recipe, limits.pixel_bytes / 2, options.before_sample),
      decoder_(std::move(engine), device, capacity_, limits.pixel_bytes + alignment) {
  check_loader_options(options);
  check_photo_recipe(recipe);
  keep_freed_memory();
  const int count = block_count(plan, recipe, options);
  images_ = Tensor::empty({count * capacity_, image_size()}, DType::u8, device);
  labels_ = Tensor::empty({count * capacity_}, DType::i32, device);
  indices_ = iota_indices(count * capacity_, device);
  for (int i = 0; i < count; ++i) {
    Block& block = *blocks_.emplace_back(std::make_unique<Block>(i, device));
    block.photos.resize(static_cast<std::size_t>(capacity_));
    free_.push_back(&block);
  }
  // The memory may have had other uses on this thread's stream.
  current_stream(device).synchronize();
  try {
    for (int i = 0; i < std::max(options.workers, 1); ++i) threads_.emplace_back([this] { read_files(); });
    threads_.emplace_back([this] { decode_blocks(); });
  } catch (...) {
    stop();
    throw;
  }
}

EngineDecodedPhotos::~EngineDecodedPhotos() {
  stop();
}

void EngineDecodedPhotos::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  has_chunks_.notify_all();
  was_read_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

std::int64_t EngineDecodedPhotos::device_bytes(const BatchPlan& plan, const PhotoRecipe& recipe,
                                               const LoaderOptions& options) {
  // The pixels of a call, and as much for the library's own memory.
  return block_count(plan, recipe, options) * block_positions(plan, block_images) * image_bytes(recipe) +
         2 * EngineLimits().pixel_bytes;
}

std::string EngineDecodedPhotos::description() const {
  return fmt::format("decoded by the JPEG engine of {}, augmented there", device().to_string());
}

std::vector<SkippedSample> EngineDecodedPhotos::skipped() const {
  std::vector<SkippedSample> all;
  for (const BadSample& bad : fetcher_.bad())
    all.push_back({bad.sample, photos_->table().path(bad.sample), bad.reason, bad.kind});
  return all;
}

// Called in a handler: the first exception ends the run.
void EngineDecodedPhotos::fail_run() {
  const std::string text = exception_text();
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = text;
    stopped_ = true;
  }
  has_chunks_.notify_all();
  was_read_.notify_all();
  was_decoded_.notify_all();
}

std::int64_t EngineDecodedPhotos::file_bytes(const Block& block, std::int64_t begin, std::int64_t end) {
  std::int64_t bytes = 0;
  for (std::int64_t i = begin; i < end; ++i)
    if (const auto& file = block.photos[static_cast<std::size_t>(i)].file) bytes += std::ssize(file->bytes());
  return bytes;
}

void EngineDecodedPhotos::read_files() try {
  const ThreadLimit one_thread(1);
  PhotoScratch scratch;
  for (;;) {
    Chunk chunk;
    {
      std::unique_lock lock(mutex_);
      has_chunks_.wait(lock, [&] {
        return stopped_ ||
               (!chunks_.empty() && (held_bytes_ < limits_.read_bytes || chunks_.front().block->is_claimed));
      });
      if (stopped_) return;
      chunk = chunks_.front();
      chunks_.pop_front();
    }
    BlockOrder order(plan_, chunk.block->epoch);
    for (std::int64_t i = chunk.begin; i < chunk.end; ++i)
      fetcher_.fetch(order, chunk.block->epoch, chunk.block->first + i, chunk.with_engine,
                     chunk.block->photos[static_cast<std::size_t>(i)], scratch);
    const std::int64_t bytes = file_bytes(*chunk.block, chunk.begin, chunk.end);
    bool is_last = false;
    {
      const std::lock_guard lock(mutex_);
      held_bytes_ += bytes;
      is_last = --chunk.block->unread == 0;
    }
    if (is_last) was_read_.notify_all();
  }
} catch (...) {
  fail_run();
}

void EngineDecodedPhotos::decode_blocks() try {
  const ThreadLimit one_thread(1);
  for (;;) {
    Block* block = nullptr;
    bool is_needed = false;
    {
      std::unique_lock lock(mutex_);
      was_read_.wait(lock, [&] { return stopped_ || !posted_.empty(); });
      if (stopped_) return;
      block = posted_.front();
      posted_.pop_front();
      block->claimed_ns = monotonic_ns();
      block->is_claimed = true;
      has_chunks_.notify_all();
      was_read_.wait(lock, [&] { return stopped_ || block->unread == 0; });
      if (stopped_) return;
      is_needed = !block->abandoned;
    }
    block->read_ns = monotonic_ns();
    if (is_needed && !decode(*block)) return;
    const std::int64_t bytes = file_bytes(*block, 0, block->count);
    for (FetchedPhoto& photo : block->photos) photo.file.reset();
    block->done_ns = monotonic_ns();
    {
      const std::lock_guard lock(mutex_);
      held_bytes_ -= bytes;
      block->busy = block->is_claimed = false;
    }
    has_chunks_.notify_all();
    was_decoded_.notify_all();
  }
} catch (...) {
  fail_run();
}

// The jobs and locations of the positions from `begin` to at most `max_end`, as many as the limits allow;
// returns their end.
std::int64_t EngineDecodedPhotos::collect(const Block& block, std::int64_t begin, std::int64_t max_end) {
  decoder_.jobs.clear();
  decoder_.host_locations.clear();
  decoder_.host_keys.clear();
  std::int64_t used = 0, end = begin;
  for (; end < max_end; ++end) {
    const FetchedPhoto& photo = block.photos[static_cast<std::size_t>(end)];
    PhotoLocation location;
    if (photo.file) {
      const std::int64_t bytes = pixel_bytes(*photo.file);
      if (!decoder_.jobs.empty() &&
          (used + bytes > limits_.pixel_bytes || std::ssize(decoder_.jobs) == limits_.files))
        break;
      location = {.offset = used, .height = photo.file->height(), .width = photo.file->width()};
      decoder_.jobs.push_back({.bytes = photo.file->bytes(),
                               .pixels = reinterpret_cast<std::uint8_t*>(decoder_.pixels.data()) + used,
                               .width = photo.file->width()});
      used += bytes;
    }
    decoder_.host_locations.push_back(location);
    decoder_.host_keys.push_back(static_cast<std::int32_t>(photo.key));
  }
  return end;
}

// False: the source ends, and other threads may still read files of the block.
bool EngineDecodedPhotos::decode(Block& block) {
  for (std::int64_t begin = 0; begin < block.count;) {
    decoder_.transformed.synchronize();  // the pixels of the last call were used
    const std::int64_t end = collect(block, begin, block.count);
    if (!decoder_.jobs.empty() && !decoder_.engine->decode(decoder_.jobs)) {
      // One of the files is damaged, and it is not known which: the CPU decodes all of them.
      const std::int64_t bytes = file_bytes(block, begin, end);
      post_chunks(block, begin, end, false);
      std::unique_lock lock(mutex_);
      was_read_.wait(lock, [&] { return stopped_ || block.unread == 0; });
      if (stopped_) return false;
      held_bytes_ -= bytes - file_bytes(block, begin, end);
      if (block.abandoned) return true;
      lock.unlock();
      collect(block, begin, end);
    }
    if (begin == 0) block.released[block.rounds % 2].synchronize();
    transform(block, begin, end);
    begin = end;
  }
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < block.count; ++i)
    labels.push_back(block.photos[static_cast<std::size_t>(i)].label);
  copy(labels_.data<std::int32_t>() + block.index * capacity_, labels.data(), 4 * block.count,
       decoder_.stream);
  block.ready[++block.rounds % 2].record(decoder_.stream);
  return true;
}

// Positions without a photograph on the device become black; then the images of the CPU replace them.
void EngineDecodedPhotos::transform(const Block& block, std::int64_t begin, std::int64_t end) {
  const StreamView stream = decoder_.stream;
  const std::int64_t count = end - begin, bytes = image_size();
  std::uint8_t* const out = images_.data<std::uint8_t>() + (block.index * capacity_ + begin) * bytes;
  copy(decoder_.locations.data(), decoder_.host_locations.data(),
       count * static_cast<std::int64_t>(sizeof(PhotoLocation)), stream);
  copy(decoder_.keys.data(), decoder_.host_keys.data(), 4 * count, stream);
  const detail::PhotoBatch batch{
      .recipe = recipe_,
      .seed = plan_.transform_seed(),
      .epoch = static_cast<std::uint32_t>(block.epoch),
      .pixels = reinterpret_cast<const std::uint8_t*>(decoder_.pixels.data()),
      .locations = reinterpret_cast<const PhotoLocation*>(decoder_.locations.data()),
      .photo_count = count,
      .samples = indices_.data<std::int32_t>(),
      .keys = reinterpret_cast<const std::int32_t*>(decoder_.keys.data()),
      .out = out,
      .count = count};
  on_backend(device(), "photos", [&]<Backend B>() { detail::photo_kernel<B>(batch, stream); });
  for (std::int64_t i = begin; i < end; ++i)
    if (const FetchedPhoto& photo = block.photos[static_cast<std::size_t>(i)]; photo.has_image)
      copy(out + (i - begin) * bytes, photo.image.data(), bytes, stream);
  decoder_.transformed.record(stream);
}

void EngineDecodedPhotos::post_chunks(Block& block, std::int64_t begin, std::int64_t end, bool with_engine) {
  {
    const std::lock_guard lock(mutex_);
    for (; begin < end; begin += chunk_images, ++block.unread) {
      const Chunk chunk{&block, begin, std::min(begin + chunk_images, end), with_engine};
      if (with_engine)
        chunks_.push_back(chunk);
      else
        chunks_.push_front(chunk);  // the decoding thread waits for it
    }
  }
  has_chunks_.notify_all();
}

void EngineDecodedPhotos::set_next(std::int64_t epoch, std::int64_t first) {
  if (first >= plan_.local_positions()) {
    ++epoch;
    first = 0;
  }
  next_ = {};
  if (epochs_ > 0 && epoch >= epochs_) return;
  const std::int64_t end = std::min((first / capacity_ + 1) * capacity_, plan_.local_positions());
  next_ = {epoch, first, end - first};
}

void EngineDecodedPhotos::post_free_blocks() {
  for (; !free_.empty() && next_.count > 0; free_.pop_front()) {
    Block& block = *free_.front();
    block.epoch = next_.epoch;
    block.first = next_.first;
    block.count = next_.count;
    post_chunks(block, 0, block.count, true);
    {
      const std::lock_guard lock(mutex_);
      block.busy = true;
      block.abandoned = false;
      posted_.push_back(&block);
    }
    was_read_.notify_all();
    prefetched_.push_back(&block);
    set_next(next_.epoch, next_.first + next_.count);
  }
}

void EngineDecodedPhotos::restart_at(std::int64_t epoch, std::int64_t first) {
  std::unique_lock lock(mutex_);
  for (Block* const block : prefetched_) block->abandoned = true;
  for (const Chunk& chunk : chunks_) --chunk.block->unread;
  chunks_.clear();
  was_read_.notify_all();
  for (Block* const block : prefetched_) {
    was_decoded_.wait(lock, [&] { return stopped_ || !block->busy; });
    free_.push_back(block);
  }
  lock.unlock();
  prefetched_.clear();
  for (const std::unique_ptr<Block>& block : blocks_) block->was_released = false;
  set_next(epoch, first);
}

void EngineDecodedPhotos::wait_for_front() {
  const Block& block = *prefetched_.front();
  std::unique_lock lock(mutex_);
  const auto is_done = [&] { return !failure_.empty() || !block.busy; };
  if (!is_done()) {
    const TimelineSpan span(timeline_, "wait for images",
                            {"positions", block.epoch, block.first, block.count});
    was_decoded_.wait(lock, is_done);
  }
  check(failure_.empty(), "{}", failure_);
}

SourceBlock EngineDecodedPhotos::next_block(std::int64_t epoch, std::int64_t first, std::int64_t max_count) {
  expect(epoch >= 0 && first >= 0 && first < plan_.local_positions() && (epochs_ == 0 || epoch < epochs_));
  const auto contains = [&](const Block& block) {
    return block.epoch == epoch && first >= block.first && first < block.first + block.count;
  };
  if (current_ == nullptr || !contains(*current_)) {
    Block* const before = std::exchange(current_, nullptr);
    // All steps that use it are queued on the stream.
    if (before != nullptr) before->released[before->rounds % 2].record(current_stream(device()));
    const bool follows =
        !prefetched_.empty() && prefetched_.front()->epoch == epoch && prefetched_.front()->first == first;
    if (!follows) restart_at(epoch, first);
    post_free_blocks();
    wait_for_front();
    current_ = prefetched_.front();
    prefetched_.pop_front();
    if (before != nullptr) {
      // A block is decoded again after the steps with its last contents, so the events of those have been
      // reached: the GPU waited then if the block was ready after the steps with the one before it.
      if (current_->was_released && before->was_released)
        waited_ms_ += std::max(0.0, current_->ready[(current_->rounds - 1) % 2].elapsed_ms_since(
                                        before->released[(before->rounds - 1) % 2]));
      before->was_released = true;
      free_.push_back(before);
      post_free_blocks();
    }
    current_->ready[current_->rounds % 2].block_stream(current_stream(device()));
    if (timeline_) {
      const TimelineRange range{"positions", current_->epoch, current_->first, current_->count};
      const Track track{TrackKind::worker, 0};
      timeline_->add(track, "wait for files", current_->claimed_ns, current_->read_ns, range);
      timeline_->add(track, "decode", current_->read_ns, current_->done_ns, range);
    }
  }
  const std::int64_t at = first - current_->first, start = current_->index * capacity_;
  return {.count = std::min(max_count, current_->count - at),
          .images = images_.data<std::uint8_t>(),
          .image_count = images_.size(0),
          .samples = indices_.data<std::int32_t>() + start + at,
          .labels = labels_.data<std::int32_t>() + start + at};
}

}  // namespace tandem
