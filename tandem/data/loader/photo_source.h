// Photographs that stay on a device, for training (a shuffled plan and a training recipe) and for evaluation
// (a plan that does not shuffle, evaluation_photo_recipe()). With any source a position of an epoch holds the
// same bytes. The next photograph in the order replaces one that cannot be read; where the plan does not
// replace it, the image is black with the label −1.
#pragma once

#include <memory>
#include <vector>

#include "tandem/augment/photo.h"
#include "tandem/data/loader/batch_source.h"
#include "tandem/data/loader/timeline.h"
#include "tandem/data/photo_store.h"

namespace tandem {

// Decoded photographs that stay on a device and are transformed there, one block at a time between the steps:
// on a GPU by kernels, on the CPU by the trainer's threads.
class DevicePhotos : public BatchSource {
 public:
  // The store must be decoded. On the CPU, `timeline`, if there is one, records the time it takes.
  DevicePhotos(std::shared_ptr<const PhotoStore> photos, const BatchPlan& plan, const PhotoRecipe& recipe,
               Device device, Timeline* timeline = nullptr);

  Device device() const override { return samples_.device(); }
  std::int64_t image_size() const override { return std::int64_t{3} * recipe_.height * recipe_.width; }
  SourceBlock next_block(std::int64_t epoch, std::int64_t first, std::int64_t max_count) override;
  std::string description() const override;
  std::vector<SkippedSample> skipped() const override;

 private:
  void fill_order_on_host(std::int64_t epoch, std::int64_t first, std::int64_t count);

  std::shared_ptr<const PhotoStore> photos_;
  PhotoRecipe recipe_;
  Timeline* timeline_;
  Tensor pixels_, locations_, all_labels_;  // on a GPU; on the CPU the store's own are used
  Tensor samples_, labels_, transformed_;
  Tensor keys_;     // with balanced sampling
  Tensor indices_;  // 0, 1, 2, …
};

}  // namespace tandem
