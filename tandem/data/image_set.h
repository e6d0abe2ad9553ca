// Labelled 8-bit images of one size, in memory: what MNIST, Fashion-MNIST and the built-in generators are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/tensor/tensor.h"

namespace tandem {

struct ImageSet {
  Tensor images;                     // u8, (count, height, width, channels)
  Tensor labels;                     // i32, (count)
  std::vector<std::string> classes;  // a name for each label

  std::int64_t count() const { return images.defined() ? images.size(0) : 0; }
  std::int64_t image_size() const { return count() == 0 ? 0 : images.numel() / count(); }

  // Images begin … end − 1, sharing memory.
  ImageSet slice(std::int64_t begin, std::int64_t end) const;
  ImageSet to(Device device) const;
};

// Error unless shapes and dtypes fit and every label names a class; `name` says what the set is.
void check_image_set(const ImageSet& set, const std::string& name);

// Training and test images that belong together.
struct DataSplit {
  std::string name;  // "mnist"
  ImageSet train, test;
};

}  // namespace tandem
