// Sources of images that workers read and transform, and of images that are augmented where they are. With
// any source and any number of workers, a position of an epoch holds the same bytes: random numbers are a
// function of (seed, epoch, sample, operation).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tandem/augment/recipe.h"
#include "tandem/data/loader/batch_source.h"
#include "tandem/data/loader/loader.h"
#include "tandem/device/pinned.h"
#include "tandem/device/stream.h"

namespace tandem {

// Images augmented by workers on the CPU, for a trainer on the CPU.
class HostPrefetcher : public BatchSource {
 public:
  HostPrefetcher(std::shared_ptr<const detail::SampleStore> samples, const BatchPlan& plan,
                 const Transform& transform, const LoaderOptions& options);

  Device device() const override { return cpu_device; }
  std::int64_t image_size() const override { return loader_.image_bytes(); }
  SourceBlock next_block(std::int64_t epoch, std::int64_t first, std::int64_t max_count) override;
  int reserved_cpus() const override { return reserved_cpus_; }
  std::string description() const override { return description_; }
  double waited_ms() const override { return loader_.statistics().waited_ms; }
  std::vector<SkippedSample> skipped() const override { return loader_.statistics().skipped; }
  const Loader& loader() const { return loader_; }

 private:
  int reserved_cpus_;
  std::string description_;
  Loader loader_;
  std::optional<LoadedBlock> held_;
  std::vector<std::int32_t> indices_;  // 0, 1, 2, …
};

// Images augmented by workers on the CPU into pinned memory, and copied to a GPU on a separate stream while
// the previous steps run.
class DevicePrefetcher : public BatchSource {
 public:
  DevicePrefetcher(std::shared_ptr<const detail::SampleStore> samples, const BatchPlan& plan,
                   const Transform& transform, const LoaderOptions& options, Device device);

  Device device() const override { return copies_.view().device; }
  std::int64_t image_size() const override { return loader_.image_bytes(); }
  SourceBlock next_block(std::int64_t epoch, std::int64_t first, std::int64_t max_count) override;
  std::string description() const override { return description_; }
  // The time the GPU has waited for copies.
  double waited_ms() const override { return waited_ms_; }
  std::vector<SkippedSample> skipped() const override { return loader_.statistics().skipped; }
  const Loader& loader() const { return loader_; }

 private:
  struct DeviceBlock {
    explicit DeviceBlock(Device device) : free(device), ready(device) {}

    Tensor images, labels;
    std::int64_t epoch = -1, first = 0, count = 0;  // epoch −1: never filled
    Event free;                                     // the last step that uses it has run
    Event ready;                                    // the copies into it are complete
  };

  void fill(DeviceBlock& block, std::int64_t epoch, std::int64_t first);

  std::string description_;
  Timeline* timeline_;
  Loader loader_;
  PinnedMemory pinned_;
  Stream copies_;
  DeviceBlock blocks_[2];
  int current_ = 0;
  Tensor indices_;  // 0, 1, 2, …
  double waited_ms_ = 0;
};

// Images augmented on the device of the set, one block at a time between the steps: on a GPU by one kernel,
// on the CPU by the trainer's threads.
class DeviceAugmentedImages : public BatchSource {
 public:
  // On the CPU, `timeline`, if there is one, records the time it takes.
  DeviceAugmentedImages(const ImageSet& images, const BatchPlan& plan, const Recipe& recipe,
                        Timeline* timeline = nullptr);

  Device device() const override { return images_.images.device(); }
  std::int64_t image_size() const override { return images_.image_size(); }
  SourceBlock next_block(std::int64_t epoch, std::int64_t first, std::int64_t max_count) override;
  std::string description() const override;

 private:
  ImageSet images_;
  Recipe recipe_;
  Timeline* timeline_;
  Tensor samples_, labels_, augmented_;
  Tensor keys_;     // with balanced sampling
  Tensor indices_;  // 0, 1, 2, …
};

}  // namespace tandem
