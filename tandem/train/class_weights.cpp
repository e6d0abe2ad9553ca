#include "tandem/train/class_weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tandem/core/check.h"
#include "tandem/core/did_you_mean.h"
#include "tandem/text/parse_number.h"
#include "tandem/text/utf8.h"

namespace tandem {
namespace {

void check_weight(const std::string& name, double weight) {
  check(std::isfinite(weight) && weight >= 0, "expected a finite weight of 0 or more for '{}', got {}",
        one_line(name), weight);
}

// n / (classes · n_class), of the classes that have images.
std::vector<double> balanced_values(const std::vector<std::int64_t>& counts) {
  const auto images = static_cast<double>(std::reduce(counts.begin(), counts.end()));
  const auto classes = static_cast<double>(std::ranges::count_if(counts, [](auto n) { return n > 0; }));
  std::vector<double> values;
  values.reserve(counts.size());
  for (const std::int64_t count : counts)
    values.push_back(count > 0 ? images / (classes * static_cast<double>(count)) : 1);
  return values;
}

}  // namespace

ClassWeights ClassWeights::parse(const std::string& text) {
  if (text == "none") return {};
  if (text == "balanced") return {.balanced = true};
  ClassWeights weights;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t equals = part.rfind('=');
    const auto weight = equals == part.npos ? std::nullopt : parse_number<double>(part.substr(equals + 1));
    check(equals != part.npos && equals > 0 && weight,
          "expected none, balanced or weights such as cat=2,dog=0.5, got '{}'", one_line(text));
    const std::string name = part.substr(0, equals);
    check_weight(name, *weight);
    const bool is_known =
        std::ranges::any_of(weights.named, [&](const auto& one) { return one.first == name; });
    check(!is_known, "expected one weight for each class, got two for '{}'", one_line(name));
    weights.named.emplace_back(name, *weight);
    begin = end + 1;
  }
  return weights;
}

std::string ClassWeights::to_string() const {
  if (named.empty()) return balanced ? "balanced" : "none";
  std::vector<std::string> parts;
  for (const auto& [name, weight] : named) parts.push_back(fmt::format("{}={}", name, weight));
  return fmt::format("{}", fmt::join(parts, ","));
}

std::vector<double> ClassWeights::values(const std::vector<std::string>& classes,
                                         const std::vector<std::int64_t>& counts) const {
  expect(classes.size() == counts.size());
  check(!balanced || named.empty(), "[train] expected balanced class_weights or named ones, got both");
  if (balanced) return balanced_values(counts);
  std::vector<double> values(classes.size(), 1);
  for (const auto& [name, weight] : named) {
    const auto found = std::ranges::find(classes, name);
    if (found == classes.end())
      fail("[train] class_weights: the data has no class '{}'{}", one_line(name),
           did_you_mean(name, classes));
    try {
      check_weight(name, weight);
    } catch (const Error& error) {
      fail("[train] class_weights: {}", error.what());
    }
    values[static_cast<std::size_t>(found - classes.begin())] = weight;
  }
  double total = 0;
  for (std::size_t i = 0; i < values.size(); ++i) total += counts[i] > 0 ? values[i] : 0;
  check(total > 0, "[train] class_weights: expected a weight above 0 for a class that has training images");
  return values;
}

std::vector<std::int64_t> count_classes(const Dataset& dataset) {
  std::vector<std::int64_t> counts(dataset.classes().size());
  for (std::int64_t i = 0; i < dataset.size(); ++i) ++counts.at(static_cast<std::size_t>(dataset.label(i)));
  return counts;
}

}  // namespace tandem
