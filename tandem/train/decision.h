// How the outputs of a classifier become probabilities and classes, as a model file says it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace tandem {

/// A temperature (temperature.h) and a threshold, both optional.
struct Decision {
  double temperature = 1;  ///< logits are divided by it before the softmax
  /// Of two classes, the second is predicted if its probability is at least this. None: the more probable
  /// one.
  std::optional<double> threshold = {};

  bool empty() const { return temperature == 1 && !threshold; }
  /// The index of the predicted class.
  std::size_t choose(std::span<const float> probabilities) const;

  friend bool operator==(const Decision&, const Decision&) = default;
};

/// The threshold that a run is asked for: none, one that is chosen (youden_threshold()), or a value.
struct ThresholdRequest {
  bool automatic = false;
  std::optional<double> value = {};

  bool empty() const { return !automatic && !value; }
  /// "none", "auto" or a number from 0 to 1. Throws Error for others.
  static ThresholdRequest parse(const std::string& text);
  std::string to_string() const;
};

}  // namespace tandem
