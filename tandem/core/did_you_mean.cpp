#include "tandem/core/did_you_mean.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <vector>

namespace tandem {
namespace {

// Longer words are not misspelled names, and the distance takes time and memory of both lengths.
constexpr std::size_t max_length = 64;

char folded(char c) {
  return c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool begins_with(std::string_view name, std::string_view given) {
  return name.size() >= given.size() &&
         std::ranges::equal(name.substr(0, given.size()), given, {}, folded, folded);
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Rows i − 2, i − 1 and i of the table of distances between prefixes.
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = above;
    above = row;
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = folded(a[i - 1]) == folded(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string closest_name(std::string_view given, std::span<const std::string> names) {
  if (given.empty() || given.size() > max_length) return {};
  std::string closest;
  int min_distance = 0;
  for (const std::string& name : names) {
    if (name == given) return {};
    if (name.size() > max_length) continue;
    const int distance = edit_distance(given, name);
    const int max_distance = std::max(1, static_cast<int>(std::max(given.size(), name.size())) / 3);
    if (distance <= max_distance && (closest.empty() || distance < min_distance)) {
      closest = name;
      min_distance = distance;
    }
  }
  if (!closest.empty() || given.size() < 3) return closest;
  const auto longer =
      std::ranges::find_if(names, [&](const std::string& name) { return begins_with(name, given); });
  return longer == names.end() ? std::string() : *longer;
}

std::string did_you_mean(std::string_view given, std::span<const std::string> names) {
  const std::string closest = closest_name(given, names);
  return closest.empty() ? std::string() : "; did you mean '" + closest + "'?";
}

}  // namespace tandem
