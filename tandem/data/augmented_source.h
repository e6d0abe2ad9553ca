// Sources of augmented images, and of photographs made ready by workers. Whichever is used, and however many
// workers fill it, a position of an epoch holds the same bytes: what is drawn is a function of (seed, epoch,
// sample, operation).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tandem/augment/recipe.h"
#include "tandem/data/batch_source.h"
#include "tandem/data/loader.h"
#include "tandem/device/pinned.h"
#include "tandem/device/stream.h"

namespace tandem {

// Augmented by workers on the CPU, used where they are.
class LoadedImages : public BatchSource {
 public:
  // The set is on the CPU.
  LoadedImages(const ImageSet& images, const BatchPlan& plan, const Recipe& recipe,
               const LoaderOptions& options);
  LoadedImages(std::shared_ptr<const PhotoStore> photos, const BatchPlan& plan, const PhotoRecipe& recipe,
               const LoaderOptions& options);

  Device device() const override { return cpu_device; }
  std::int64_t image_size() const override { return image_size_; }
  SourceBlock take(std::int64_t epoch, std::int64_t first, std::int64_t most) override;
  int busy_cpus() const override { return busy_cpus_; }
  std::string description() const override { return description_; }
  double waited_ms() const override { return loader_.statistics().waited_ms; }
  std::vector<SkippedSample> skipped() const override { return loader_.statistics().skipped; }
  const Loader& loader() const { return loader_; }

 private:
  std::int64_t image_size_;
  int busy_cpus_;
  std::string description_;
  Loader loader_;
  std::optional<LoadedBlock> held_;
  std::vector<std::int32_t> numbers_;  // 0, 1, 2, …
};

// Augmented by workers on the CPU, into pinned memory that is copied to a GPU on a stream of its own while
// the steps before are computed.
class CopiedImages : public BatchSource {
 public:
  // The set is on the CPU.
  CopiedImages(const ImageSet& images, const BatchPlan& plan, const Recipe& recipe,
               const LoaderOptions& options, Device device);
  CopiedImages(std::shared_ptr<const PhotoStore> photos, const BatchPlan& plan, const PhotoRecipe& recipe,
               const LoaderOptions& options, Device device);

  Device device() const override { return copies_.view().device; }
  std::int64_t image_size() const override { return image_size_; }
  SourceBlock take(std::int64_t epoch, std::int64_t first, std::int64_t most) override;
  std::string description() const override { return description_; }
  // What the GPU waited for copies that came late.
  double waited_ms() const override { return waited_ms_; }
  std::vector<SkippedSample> skipped() const override { return loader_.statistics().skipped; }
  const Loader& loader() const { return loader_; }

 private:
  struct DeviceBlock {
    explicit DeviceBlock(Device device) : free(device), ready(device) {}

    Tensor images, labels;
    std::int64_t epoch = -1, first = 0, count = 0;  // no epoch: never filled
    Event free, ready;                              // its last use is over; its bytes are there
  };

  void make_blocks();
  void fill(DeviceBlock& block, std::int64_t epoch, std::int64_t first);

  std::int64_t image_size_;
  std::string description_;
  Timeline* timeline_;
  Loader loader_;
  PinnedMemory pinned_;
  Stream copies_;
  DeviceBlock blocks_[2];
  int current_ = 0;
  Tensor numbers_;
  double waited_ms_ = 0;
};

// Augmented on the device the set is on, a block at a time between the steps: on a GPU by one kernel, on the
// CPU by the threads that train.
class DeviceAugmentedImages : public BatchSource {
 public:
  // On the CPU the time it takes is told to `timeline`, if there is one.
  DeviceAugmentedImages(const ImageSet& images, const BatchPlan& plan, const Recipe& recipe,
                        Timeline* timeline = nullptr);

  Device device() const override { return images_.images.device(); }
  std::int64_t image_size() const override { return images_.image_size(); }
  SourceBlock take(std::int64_t epoch, std::int64_t first, std::int64_t most) override;
  std::string description() const override;

 private:
  ImageSet images_;
  Recipe recipe_;
  Timeline* timeline_;
  Tensor samples_, labels_, augmented_, numbers_;
};

}  // namespace tandem
