#include "tandem/train/feature_rows.h"

#include <cmath>

#include "tandem/core/check.h"

namespace tandem {

Features select_rows(const Features& features, std::span<const std::int64_t> rows) {
  Features result{.count = std::ssize(rows), .width = features.width};
  for (const std::int64_t row : rows)
    result.values.insert(result.values.end(), features.row(row), features.row(row) + features.width);
  return result;
}

Standardization::Standardization(const Features& features, std::span<const std::int64_t> labeled)
    : mean_(static_cast<std::size_t>(features.width)), scale_(mean_.size()) {
  expect(!labeled.empty());
  const auto count = static_cast<double>(labeled.size());
  for (const std::int64_t row : labeled)
    for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] += features.row(row)[i] / count;
  for (const std::int64_t row : labeled)
    for (std::size_t i = 0; i < mean_.size(); ++i)
      scale_[i] += std::pow(features.row(row)[i] - mean_[i], 2) / count;
  for (std::size_t i = 0; i < mean_.size(); ++i) {
    // A deviation this far below the mean is rounding in f32.
    const bool is_constant = std::sqrt(scale_[i]) <= 1e-6 * std::abs(mean_[i]);
    scale_[i] = is_constant ? 0 : 1 / std::sqrt(scale_[i] * static_cast<double>(features.width));
  }
}

FeatureRows Standardization::operator()(const Features& features, std::span<const std::int64_t> rows) const {
  expect(features.width == std::ssize(mean_));
  FeatureRows result{.count = std::ssize(rows), .width = features.width};
  result.values.resize(rows.size() * mean_.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const float* const from = features.row(rows[row]);
    double* const to = result.row(static_cast<std::int64_t>(row));
    for (std::size_t i = 0; i < mean_.size(); ++i) to[i] = (from[i] - mean_[i]) * scale_[i];
  }
  return result;
}

}  // namespace tandem
