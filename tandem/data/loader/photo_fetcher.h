// What happens to one position of an epoch before a JPEG engine decodes it: its file is read, and a file that
// the engine cannot decode is decoded and transformed here, on the CPU. Both ways give the same image.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tandem/augment/photo.h"
#include "tandem/data/batches.h"
#include "tandem/data/loader/block_order.h"
#include "tandem/data/loader/worker.h"
#include "tandem/data/photo_store.h"

namespace tandem {

// A position: a file for the engine, a transformed image, or neither, where no photograph could be read.
struct FetchedPhoto {
  std::unique_ptr<PhotoFile> file;
  std::vector<std::uint8_t> image;
  bool has_image = false;
  std::int32_t label = -1;
  std::uint32_t key = 0;  // of its random arguments
};

// Used by several threads at once.
class PhotoFetcher {
 public:
  // The plan's class table must outlive the fetcher. Photographs with more than `max_bytes` of pixels are not
  // for the engine.
  PhotoFetcher(std::shared_ptr<const PhotoStore> photos, const BatchPlan& plan, const PhotoRecipe& recipe,
               std::int64_t max_bytes, BeforeSample before_sample);

  // Fetches the photograph at a local position of the epoch of `order`. As in fill_slot(), the next one of
  // the pass replaces a photograph that cannot be read, or nothing does. Without `with_engine`, the CPU
  // decodes. Throws Error, which names the file, when the run must end.
  void fetch(BlockOrder& order, std::int64_t epoch, std::int64_t position, bool with_engine,
             FetchedPhoto& out, PhotoScratch& scratch);

  // Photographs that could not be read, in the order they were found.
  std::vector<BadSample> bad() const;

 private:
  bool read(const detail::Draw& draw, std::int64_t epoch, bool with_engine, FetchedPhoto& out,
            PhotoScratch& scratch, BadSample& bad);
  void report_bad(const BadSample& bad);

  std::shared_ptr<const PhotoStore> photos_;
  BatchPlan plan_;
  PhotoRecipe recipe_;
  std::int64_t max_bytes_;
  BeforeSample before_sample_;
  mutable std::mutex mutex_;
  std::vector<BadSample> bad_;
};

}  // namespace tandem
