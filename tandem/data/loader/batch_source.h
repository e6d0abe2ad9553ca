// Where training steps get their images from: an in-memory set as it is (here), or prefetched augmented
// images (augmented_source.h). An engine requests blocks of positions of an epoch, in the order of its steps.
// A source delivers the part of every batch that its plan has: all positions here are local ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/data/batches.h"
#include "tandem/data/image_set.h"
#include "tandem/data/skipped_sample.h"

namespace tandem {

// Memory on the source's device, owned by the source.
struct SourceBlock {
  std::int64_t count = 0;                // positions, from the requested one on
  const std::uint8_t* images = nullptr;  // contiguous
  std::int64_t image_count = 0;
  const std::int32_t* samples = nullptr;  // the index into `images` at each position
  // The label at each position. −1 for an unreadable photograph, where the plan does not replace it.
  const std::int32_t* labels = nullptr;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  const BatchPlan& plan() const { return plan_; }
  virtual Device device() const = 0;
  virtual std::int64_t image_size() const = 0;  // pixels times channels

  // Local positions first, first + 1, … of an epoch: whole local batches, as many as are available, at most
  // `max_count` positions. `first` begins a batch and is below plan().local_positions(), and only the epoch's
  // last batch may be smaller. The block is valid until the next call. On a GPU, both the block and its reuse
  // by the next call are ordered on the calling thread's stream.
  virtual SourceBlock next_block(std::int64_t epoch, std::int64_t first, std::int64_t max_count) = 0;

  // The number of CPUs the trainer should leave to the source's workers.
  virtual int reserved_cpus() const { return 0; }

  // For logs: "by 4 threads on the CPU".
  virtual std::string description() const = 0;

  // Total time that next_block() has waited for images.
  virtual double waited_ms() const { return 0; }

  // Samples found to be unusable so far.
  virtual std::vector<SkippedSample> skipped() const { return {}; }

 protected:
  explicit BatchSource(const BatchPlan& plan) : plan_(plan) { check_batch_plan(plan); }

  const BatchPlan plan_;
};

// Images of a set in memory, not augmented.
class InMemorySource : public BatchSource {
 public:
  InMemorySource(const ImageSet& images, const BatchPlan& plan);

  Device device() const override { return images_.images.device(); }
  std::int64_t image_size() const override { return images_.image_size(); }
  SourceBlock next_block(std::int64_t epoch, std::int64_t first, std::int64_t max_count) override;
  std::string description() const override { return "as they are"; }

 private:
  ImageSet images_;
  Tensor samples_, labels_;  // of the current block
};

// Fills `samples` with the samples at the local positions from `first` on, and `labels` with their labels.
// All tensors are on one device.
void fill_block(const BatchPlan& plan, std::int64_t epoch, std::int64_t first, const Tensor& all_labels,
                const Tensor& samples, const Tensor& labels);

// The size of a block of whole local batches: about `wanted` positions, and no more than an epoch has.
std::int64_t block_positions(const BatchPlan& plan, std::int64_t wanted);

}  // namespace tandem
