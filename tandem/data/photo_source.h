// Sources of photographs, for training (a shuffled plan and a recipe for training) and for evaluation (a plan
// that does not shuffle, evaluation_photos()). Whichever is used, a position of an epoch holds the same
// bytes, or on a GPU at most a level apart. Where the plan does not shuffle, a photograph that cannot be read
// is black and has the label −1; where it does, the next one of the order takes its place.
#pragma once

#include <memory>
#include <vector>

#include "tandem/augment/photo.h"
#include "tandem/data/augmented_source.h"
#include "tandem/data/batch_source.h"
#include "tandem/data/photo_store.h"

namespace tandem {

// Decoded photographs, kept on a device and made ready there, a block at a time between the steps: on a GPU
// by kernels, on the CPU by the threads that train.
class DevicePhotos : public BatchSource {
 public:
  // The store is decoded. On the CPU the time it takes is told to `timeline`, if there is one.
  DevicePhotos(std::shared_ptr<const PhotoStore> photos, const BatchPlan& plan, const PhotoRecipe& recipe,
               Device device, Timeline* timeline = nullptr);

  Device device() const override { return samples_.device(); }
  std::int64_t image_size() const override { return std::int64_t{3} * recipe_.height * recipe_.width; }
  SourceBlock take(std::int64_t epoch, std::int64_t first, std::int64_t most) override;
  std::string description() const override;
  std::vector<SkippedSample> skipped() const override;

 private:
  void fill_order_here(std::int64_t epoch, std::int64_t first, std::int64_t count);

  std::shared_ptr<const PhotoStore> photos_;
  PhotoRecipe recipe_;
  Timeline* timeline_;
  Tensor pixels_, places_, all_labels_;  // on a GPU; on the CPU the store's own are used
  Tensor samples_, labels_, made_, numbers_;
};

// True when the store is decoded and takes no more than half of what `device` has free.
bool photos_fit(const PhotoStore& photos, Device device);

// The source for a device: DevicePhotos on a GPU where they fit, else workers (LoadedImages, CopiedImages).
std::unique_ptr<BatchSource> photo_source(std::shared_ptr<const PhotoStore> photos, const BatchPlan& plan,
                                          const PhotoRecipe& recipe, Device device,
                                          const LoaderOptions& options);

}  // namespace tandem
