// Hashes of batches: one SHA-256 per batch over pixels, labels and sample indices. Two runs train on the same
// data exactly when their hashes are equal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/data/batches.h"
#include "tandem/data/loader/loader.h"

namespace tandem {

// A range of positions in an epoch. Both ends are at batch boundaries or at the end of the epoch.
struct PositionRange {
  std::int64_t epoch = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Images in host memory, at consecutive positions of an epoch.
struct HostBlock {
  std::int64_t epoch = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  const std::uint8_t* images = nullptr;
  const std::int32_t* samples = nullptr;
  const std::int32_t* labels = nullptr;
};

class BatchHashes {
 public:
  BatchHashes(const BatchPlan& plan, std::int64_t image_size) : plan_(plan), image_size_(image_size) {}

  // The block must consist of whole batches.
  void add(const HostBlock& block);
  // Hashes everything the loader delivers for the range.
  void add(Loader& loader, const PositionRange& range);

  const std::vector<std::string>& batches() const { return hashes_; }
  std::int64_t images() const { return images_; }
  std::string combined() const;  // one hash of all batches

 private:
  BatchPlan plan_;
  std::int64_t image_size_;
  std::vector<std::string> hashes_;
  std::int64_t images_ = 0;
};

// The index of the first batch that differs or is missing on one side; −1 when all are equal.
std::int64_t first_difference(const std::vector<std::string>& expected, const std::vector<std::string>& got);

}  // namespace tandem
