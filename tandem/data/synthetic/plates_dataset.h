// The rendered plates as data sets: training, validation and test images that never overlap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/data/photo_split.h"

namespace tandem {

// Cleaned and dirty plates alternately, rendered one by one from consecutive plate numbers.
class PlatesDataset : public Dataset {
 public:
  PlatesDataset(std::uint64_t seed, std::uint64_t first, std::int64_t count)
      : seed_(seed), first_(first), count_(count) {}

  std::int64_t size() const override { return count_; }
  Image image(std::int64_t index) const override;
  std::int32_t label(std::int64_t index) const override { return static_cast<std::int32_t>(index % 2); }
  std::vector<std::string> classes() const override;
  std::string describe(std::int64_t index) const override;

 private:
  std::uint64_t seed_, first_;
  std::int64_t count_;
};

// `train` training plates and 200 for validation, of the seed, and 500 test plates, which depend on nothing.
PhotoSplit plates_split(std::uint64_t seed, std::int64_t train);

}  // namespace tandem
