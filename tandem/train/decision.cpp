#include "tandem/train/decision.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/text/parse_number.h"

namespace tandem {

std::size_t Decision::choose(std::span<const float> probabilities) const {
  if (threshold && probabilities.size() == 2)
    return static_cast<double>(probabilities[1]) >= *threshold ? 1 : 0;
  return static_cast<std::size_t>(std::ranges::max_element(probabilities) - probabilities.begin());
}

ThresholdRequest ThresholdRequest::parse(const std::string& text) {
  if (text == "none") return {};
  if (text == "auto") return {.automatic = true};
  const std::optional<double> value = parse_number<double>(text);
  check(value && *value >= 0 && *value <= 1, "expected none, auto or a number from 0 to 1, got '{}'", text);
  return {.value = value};
}

std::string ThresholdRequest::to_string() const {
  return automatic ? "auto" : value ? fmt::format("{}", *value) : "none";
}

}  // namespace tandem
