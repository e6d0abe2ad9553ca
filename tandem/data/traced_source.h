// A source whose takes divide the time of a run: between two of them the trainer computes the steps of a
// block.
#pragma once

#include <memory>

#include "tandem/data/batch_source.h"
#include "tandem/data/timeline.h"

namespace tandem {

// Gives what `source` gives. After a take() a bar "steps" begins, which the next one ends; the last of a row
// of steps is ended by Timeline::end().
class TracedSource : public BatchSource {
 public:
  // `on_device`: what a GPU does between the steps of two blocks, for its own track.
  TracedSource(std::unique_ptr<BatchSource> source, Timeline& timeline, const char* on_device)
      : BatchSource(source->plan()), source_(std::move(source)), timeline_(timeline), on_device_(on_device) {}

  Device device() const override { return source_->device(); }
  std::int64_t image_size() const override { return source_->image_size(); }
  SourceBlock take(std::int64_t epoch, std::int64_t first, std::int64_t most) override;
  int busy_cpus() const override { return source_->busy_cpus(); }
  std::string description() const override { return source_->description(); }
  double waited_ms() const override { return source_->waited_ms(); }
  std::vector<SkippedSample> skipped() const override { return source_->skipped(); }

 private:
  std::unique_ptr<BatchSource> source_;
  Timeline& timeline_;
  const char* on_device_;
};

}  // namespace tandem
