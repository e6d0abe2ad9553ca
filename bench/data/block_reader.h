// Takes the blocks of a loader one after the other, epoch after epoch.
#pragma once

#include <cstdint>

#include "tandem/data/loader/loader.h"

namespace tandem {

class BlockReader {
 public:
  BlockReader(Loader& loader, const BatchPlan& plan) : loader_(loader), positions_(plan.positions()) {}

  // Images in the next block, which is released at once.
  std::int64_t next() {
    const LoadedBlock block = loader_.acquire(epoch_, first_);
    first_ += block.count;
    if (first_ == positions_) ++epoch_, first_ = 0;
    loader_.release(block);
    return block.count;
  }

 private:
  Loader& loader_;
  std::int64_t positions_;
  std::int64_t epoch_ = 0;
  std::int64_t first_ = 0;
};

}  // namespace tandem
