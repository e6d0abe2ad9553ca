// The distribution of a layer's activations, from which the range of their 8-bit form is chosen. Not for
// users.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tandem::detail {

// percentile: 99.99 % of the activations that are not zero are in the range. entropy: the range whose rounded
// distribution differs least from the true one (Kullback–Leibler divergence), as in NVIDIA's TensorRT. max:
// all activations are in the range.
enum class CalibrationMethod { max, percentile, entropy };
std::string_view name_of(CalibrationMethod method);

// Magnitudes in bins of equal width. The range doubles when a value is beyond it, so that one pass suffices
// and the result depends on the values alone, not on their order.
class ActivationHistogram {
 public:
  ActivationHistogram();

  // Throws Error for values that are not finite.
  void add(std::span<const float> values);
  // How large magnitudes may be before they are clamped, for a range of `levels` steps; 0 if all were zero.
  double limit(CalibrationMethod method, std::int64_t levels) const;

 private:
  double percentile_limit(double share) const;
  double entropy_limit(std::int64_t levels) const;
  double bin_width() const { return range_ / static_cast<double>(counts_.size()); }

  std::vector<std::int64_t> counts_;  // of values that are not zero
  double range_;
  float max_ = 0;
};

}  // namespace tandem::detail
