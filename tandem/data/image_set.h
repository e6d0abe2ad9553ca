// Labeled 8-bit images of one size, in memory: what MNIST, Fashion-MNIST and the built-in generators are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tandem/tensor/tensor.h"

namespace tandem {

/// Labeled 8-bit images of one size. Copies share memory.
struct ImageSet {
  Tensor images;                     ///< u8, (count, height, width, channels)
  Tensor labels;                     ///< i32, (count)
  std::vector<std::string> classes;  ///< the name of each label

  std::int64_t count() const { return images.defined() ? images.size(0) : 0; }
  /// Bytes per image: pixels times channels.
  std::int64_t image_size() const { return count() == 0 ? 0 : images.numel() / count(); }

  /// Images begin … end − 1, sharing memory. Throws Error for a range outside the set.
  ImageSet slice(std::int64_t begin, std::int64_t end) const;
  /// Copies of images, in the order of `rows`; for sets on the CPU. Throws Error for a row outside the set.
  ImageSet select(std::span<const std::int64_t> rows) const;
  /// The set on another device; shares memory when it is there already.
  ImageSet to(Device device) const;
};

/// Throws Error unless shapes, dtypes and devices match and every label has a class. `name` is the tag of the
/// error: "[name] expected …".
void check_image_set(const ImageSet& set, const std::string& name);

/// The training and the test images of a data set.
struct DataSplit {
  std::string name;  ///< "mnist"
  ImageSet train;
  ImageSet test;
};

}  // namespace tandem
