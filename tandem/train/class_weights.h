// Weights of the classes in the loss, for data whose classes have very different numbers of images.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"

namespace tandem {

struct ClassWeights {
  /// images / (classes · images of the class): every class counts the same, and the mean weight is 1.
  bool balanced = false;
  std::vector<std::pair<std::string, double>> named = {};  ///< by name; the other classes have 1

  bool empty() const { return !balanced && named.empty(); }

  /// "none", "balanced" or "cat=2,dog=0.5". Throws Error for anything else, and for a weight that is negative
  /// or not finite.
  static ClassWeights parse(const std::string& text);
  /// The inverse of parse().
  std::string to_string() const;

  /// One per class, given the number of images of each. A class without images has 1 if balanced. Throws
  /// Error for a name that is not one of `classes`, a weight that is negative or not finite, and if no image
  /// has a weight above 0.
  std::vector<double> values(const std::vector<std::string>& classes,
                             const std::vector<std::int64_t>& counts) const;
};

/// The number of samples of each class.
std::vector<std::int64_t> count_classes(const Dataset& dataset);

}  // namespace tandem
