// Records a source's work and the training steps on a timeline: between two calls of next_block() the trainer
// runs the steps of a block.
#pragma once

#include <memory>

#include "tandem/data/loader/batch_source.h"
#include "tandem/data/loader/timeline.h"

namespace tandem {

// Wraps `source`. Each next_block() begins a bar "steps", which the next call ends; Timeline::end() ends the
// last one.
class TracedSource : public BatchSource {
 public:
  // `on_device` names the GPU's work between the steps of two blocks, for its own track.
  TracedSource(std::unique_ptr<BatchSource> source, Timeline& timeline, const char* on_device)
      : BatchSource(source->plan()), source_(std::move(source)), timeline_(timeline), on_device_(on_device) {}

  Device device() const override { return source_->device(); }
  std::int64_t image_size() const override { return source_->image_size(); }
  SourceBlock next_block(std::int64_t epoch, std::int64_t first, std::int64_t max_count) override;
  int reserved_cpus() const override { return source_->reserved_cpus(); }
  std::string description() const override { return source_->description(); }
  double waited_ms() const override { return source_->waited_ms(); }
  std::vector<SkippedSample> skipped() const override { return source_->skipped(); }

 private:
  std::unique_ptr<BatchSource> source_;
  Timeline& timeline_;
  const char* on_device_;
};

}  // namespace tandem
