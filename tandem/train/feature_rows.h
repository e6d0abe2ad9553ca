// The features of images, and their standardization.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

// One row per image, row-major.
template <class T>
struct Rows {
  std::int64_t count = 0;
  std::int64_t width = 0;
  std::vector<T> values = {};

  const T* row(std::int64_t i) const { return values.data() + i * width; }
  T* row(std::int64_t i) { return values.data() + i * width; }
};

using Features = Rows<float>;      // as a network computes them
using FeatureRows = Rows<double>;  // standardized

// Rows of `features`, in this order.
Features select_rows(const Features& features, std::span<const std::int64_t> rows);

// Subtracts the mean of each feature and divides by its standard deviation, both of the labeled images, and
// by the square root of the number of features: the mean squared length of the labeled rows is 1 whatever the
// network. A feature that is constant on them becomes 0.
class Standardization {
 public:
  Standardization(const Features& features, std::span<const std::int64_t> labeled);

  FeatureRows operator()(const Features& features, std::span<const std::int64_t> rows) const;

  // (x − mean) · scale, by feature.
  const std::vector<double>& mean() const { return mean_; }
  const std::vector<double>& scale() const { return scale_; }

 private:
  std::vector<double> mean_, scale_;
};

}  // namespace tandem
