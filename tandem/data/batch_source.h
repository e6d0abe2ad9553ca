// Where training steps get their images from: a set as it is (here), or images augmented ahead of the steps
// (augmented_source.h). An engine takes blocks of positions of an epoch, in the order of its steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/data/batches.h"
#include "tandem/data/image_set.h"

namespace tandem {

// Memory of the source, on its device.
struct SourceBlock {
  std::int64_t count = 0;                // positions, from the one that was asked for
  const std::uint8_t* images = nullptr;  // one after the other
  std::int64_t image_count = 0;
  const std::int32_t* samples = nullptr;  // which of `images` stands at each position
  // The label at each position; −1, where the plan does not shuffle, for one that could not be read.
  const std::int32_t* labels = nullptr;
};

// A sample that was left out: its path or number, and why.
struct SkippedSample {
  std::int32_t sample = -1;
  std::string name, reason;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  const BatchPlan& plan() const { return plan_; }
  virtual Device device() const = 0;
  virtual std::int64_t image_size() const = 0;  // pixels times channels

  // What stands at positions first, first + 1, … of an epoch: whole batches, as many as there are at hand, at
  // most `most` positions. `first` begins a batch, and only the epoch's last batch may be smaller. The block
  // lasts until the next take(); on a GPU it is ordered on the calling thread's stream, also that next
  // take().
  virtual SourceBlock take(std::int64_t epoch, std::int64_t first, std::int64_t most) = 0;

  // CPUs that others are to leave free, so that images are ready in time.
  virtual int busy_cpus() const { return 0; }

  // In words, for logs: "by 4 threads on the CPU".
  virtual std::string description() const = 0;

  // Time take() has spent waiting for images that were not ready, since the beginning.
  virtual double waited_ms() const { return 0; }

  // Samples that could not be used, as far as they have been met.
  virtual std::vector<SkippedSample> skipped() const { return {}; }

 protected:
  explicit BatchSource(const BatchPlan& plan) : plan_(plan) { check_batch_plan(plan); }

  const BatchPlan plan_;
};

// The images as they are.
class StoredImages : public BatchSource {
 public:
  StoredImages(const ImageSet& images, const BatchPlan& plan);

  Device device() const override { return images_.images.device(); }
  std::int64_t image_size() const override { return images_.image_size(); }
  SourceBlock take(std::int64_t epoch, std::int64_t first, std::int64_t most) override;
  std::string description() const override { return "as they are"; }

 private:
  ImageSet images_;
  Tensor samples_, labels_;  // of the block
};

// Writes which samples stand at the positions from `first` on, and their labels; all on one device.
void fill_block(const BatchPlan& plan, std::int64_t epoch, std::int64_t first, const Tensor& all_labels,
                const Tensor& samples, const Tensor& labels);

// Positions of a block that are whole batches, about `wanted`, and no more than an epoch has.
std::int64_t block_positions(const BatchPlan& plan, std::int64_t wanted);

}  // namespace tandem
