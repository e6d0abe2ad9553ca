#include "tandem/study/training_case.h"

#include <fmt/ranges.h>

#include <charconv>

#include "tandem/core/check.h"

namespace tandem {

std::string TrainingCase::network() const {
  return fmt::format("{}", fmt::join(layers, ","));
}

std::string TrainingCase::name() const {
  return fmt::format("{} batch {}", network(), batch_size);
}

double TrainingCase::weights() const {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < layers.size(); ++i)
    sum += static_cast<double>(layers[i]) * static_cast<double>(layers[i + 1]);
  return sum;
}

double TrainingCase::operations() const {
  // Three products a layer; the first one needs no gradient of its inputs.
  const double first = static_cast<double>(layers[0]) * static_cast<double>(layers[1]);
  return 2 * (3 * weights() - first);
}

TrainingCase parse_training_case(std::string_view text) {
  TrainingCase parsed;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](std::int64_t& value) {
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc{} || value < 1) return false;
    at = next;
    return true;
  };
  constexpr std::string_view word = " batch ";
  bool valid = true;
  do {
    valid = number(parsed.layers.emplace_back());
  } while (valid && at < end && *at == ',' && ++at);
  valid = valid && parsed.layers.size() >= 2 &&
          text.substr(static_cast<std::size_t>(at - text.data())).starts_with(word);
  if (valid) at += word.size();
  valid = valid && number(parsed.batch_size) && at == end;
  check(valid, "[study devices] expected a case such as \"784,200,10 batch 16\", got \"{}\"", text);
  check(parsed.layers.front() == TrainingCase::inputs && parsed.layers.back() == TrainingCase::classes,
        "[study devices] expected layers from {} pixels to {} classes, got {}", TrainingCase::inputs,
        TrainingCase::classes, parsed.network());
  check(parsed.batch_size <= TrainingCase::samples,
        "[study devices] expected a batch size from 1 to {}, got {}", TrainingCase::samples,
        parsed.batch_size);
  return parsed;
}

}  // namespace tandem
