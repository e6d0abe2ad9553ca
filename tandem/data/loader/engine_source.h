// Photographs that are read from their files in every epoch, decoded by the JPEG engine of a GPU and
// transformed by its kernels. Several threads read the files; one more hands them to the engine, block by
// block, several blocks ahead of the trainer. What the engine cannot decode, the reading threads decode and
// transform on the CPU, with the same bytes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tandem/augment/photo.h"
#include "tandem/data/loader/batch_source.h"
#include "tandem/data/loader/loader.h"
#include "tandem/data/loader/photo_fetcher.h"
#include "tandem/device/buffer.h"
#include "tandem/device/jpeg_engine.h"
#include "tandem/device/priority_stream.h"
#include "tandem/device/stream.h"

namespace tandem {

// Bounds of a call of the engine, and of what is read ahead.
struct EngineLimits {
  std::int64_t pixel_bytes = std::int64_t{256} << 20;  // decoded at a time; half of it for one photograph
  std::int64_t files = 256;
  std::int64_t read_bytes = std::int64_t{1} << 30;  // besides the blocks that are being decoded
};

class EngineDecodedPhotos : public BatchSource {
 public:
  // Uses the number of workers, prefetch, the number of epochs, before_sample and the timeline of `options`.
  // The engine is that of `device`.
  EngineDecodedPhotos(std::shared_ptr<const PhotoStore> photos, const BatchPlan& plan,
                      const PhotoRecipe& recipe, const LoaderOptions& options, Device device,
                      std::unique_ptr<JpegEngine> engine, const EngineLimits& limits = {});
  ~EngineDecodedPhotos() override;

  // What it takes on the device, with its engine.
  static std::int64_t device_bytes(const BatchPlan& plan, const PhotoRecipe& recipe,
                                   const LoaderOptions& options);

  Device device() const override { return images_.device(); }
  std::int64_t image_size() const override { return std::int64_t{3} * recipe_.height * recipe_.width; }
  SourceBlock next_block(std::int64_t epoch, std::int64_t first, std::int64_t max_count) override;
  std::string description() const override;
  // The time the GPU has waited for blocks.
  double waited_ms() const override { return waited_ms_; }
  std::vector<SkippedSample> skipped() const override;

 private:
  // Local positions first … first + count − 1 of an epoch, in slot `index` of the device's memory.
  struct Block {
    Block(int slot, Device device)
        : index(slot), ready{Event(device), Event(device)}, released{Event(device), Event(device)} {}

    int index;
    std::int64_t epoch = -1, first = 0, count = 0;
    std::vector<FetchedPhoto> photos;
    int rounds = 0;             // how often it was decoded
    Event ready[2];             // it was decoded, in even and odd rounds
    Event released[2];          // the last step that uses it has run
    bool was_released = false;  // in this round or the one before, after the last restart
    // Guarded by mutex_.
    std::int64_t unread = 0;  // chunks
    bool busy = false;        // posted and not yet decoded
    bool is_claimed = false;  // a decoding thread waits for its files
    bool abandoned = false;   // not needed any more
    // For the timeline.
    std::int64_t claimed_ns = 0, read_ns = 0, done_ns = 0;
  };
  // Positions of a block that one thread reads at a time.
  struct Chunk {
    Block* block = nullptr;
    std::int64_t begin = 0, end = 0;
    bool with_engine = true;
  };
  // What the decoding thread has: memory for one call of the engine.
  struct Decoder {
    Decoder(std::unique_ptr<JpegEngine> opened, Device device, std::int64_t positions, std::int64_t bytes);

    std::unique_ptr<JpegEngine> engine;
    PriorityStream stream;  // of the transforms
    Buffer pixels, locations, keys;
    Event transformed;
    std::vector<JpegJob> jobs;
    std::vector<PhotoLocation> host_locations;
    std::vector<std::int32_t> host_keys;
  };

  static std::int64_t file_bytes(const Block& block, std::int64_t begin, std::int64_t end);
  void read_files();
  void decode_blocks();
  bool decode(Block& block);
  std::int64_t collect(const Block& block, std::int64_t begin, std::int64_t max_end);
  void transform(const Block& block, std::int64_t begin, std::int64_t end);
  void post_chunks(Block& block, std::int64_t begin, std::int64_t end, bool with_engine);
  void fail_run();
  void stop();

  void post_free_blocks();
  void restart_at(std::int64_t epoch, std::int64_t first);
  void wait_for_front();
  void set_next(std::int64_t epoch, std::int64_t first);

  std::shared_ptr<const PhotoStore> photos_;
  PhotoRecipe recipe_;
  std::int64_t epochs_;
  EngineLimits limits_;
  Timeline* timeline_;
  std::int64_t capacity_;  // positions of a block
  Tensor images_, labels_, indices_;
  PhotoFetcher fetcher_;
  Decoder decoder_;

  // The trainer's thread only.
  std::vector<std::unique_ptr<Block>> blocks_;
  std::deque<Block*> free_, prefetched_;
  Block* current_ = nullptr;
  BlockJob next_;  // the next to post; of count 0 after the last epoch
  double waited_ms_ = 0;

  std::mutex mutex_;
  std::condition_variable has_chunks_, was_read_, was_decoded_;
  std::deque<Chunk> chunks_;
  std::deque<Block*> posted_;
  std::int64_t held_bytes_ = 0;  // of files that were read
  bool stopped_ = false;
  std::string failure_;
  std::vector<std::thread> threads_;
};

}  // namespace tandem
