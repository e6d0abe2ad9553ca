// Fingerprints of batches: what a training sees, pixels, labels and samples, as one SHA-256 a batch. Two runs
// saw the same exactly when their fingerprints are equal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/data/batches.h"
#include "tandem/data/loader.h"

namespace tandem {

// Positions of an epoch; both ends begin a batch, or end the epoch.
struct Stretch {
  std::int64_t epoch = 0, begin = 0, end = 0;
};

// Images on the host, at consecutive positions.
struct HostBlock {
  std::int64_t epoch = 0, first = 0, count = 0;
  const std::uint8_t* images = nullptr;
  const std::int32_t* samples = nullptr;
  const std::int32_t* labels = nullptr;
};

class BatchHashes {
 public:
  BatchHashes(const BatchPlan& plan, std::int64_t image_size) : plan_(plan), image_size_(image_size) {}

  // Whole batches.
  void add(const HostBlock& block);
  // All that stands in the stretch.
  void add(Loader& loader, const Stretch& stretch);

  const std::vector<std::string>& batches() const { return hashes_; }
  std::int64_t images() const { return images_; }
  std::string all() const;  // one fingerprint of all

 private:
  BatchPlan plan_;
  std::int64_t image_size_;
  std::vector<std::string> hashes_;
  std::int64_t images_ = 0;
};

// The first batch in which they differ, also where one has no more; −1: they are the same.
std::int64_t first_difference(const std::vector<std::string>& expected, const std::vector<std::string>& got);

}  // namespace tandem
