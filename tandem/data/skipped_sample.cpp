#include "tandem/data/skipped_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "tandem/report/csv.h"
#include "tandem/text/format_number.h"

namespace tandem {

std::string count_skipped(std::span<const SkippedSample> skipped) {
  std::vector<std::pair<std::string, std::int64_t>> counts;
  for (const SkippedSample& sample : skipped) {
    // The reason of a missing decoder names the format.
    const std::string reason = sample.kind == SkipKind::no_decoder ? sample.reason : name_of(sample.kind);
    const auto found = std::ranges::find(counts, reason, &std::pair<std::string, std::int64_t>::first);
    if (found == counts.end())
      counts.emplace_back(reason, 1);
    else
      ++found->second;
  }
  std::ranges::stable_sort(counts, std::greater(), &std::pair<std::string, std::int64_t>::second);
  std::string text =
      fmt::format("{} file{}:", format_count(std::ssize(skipped)), skipped.size() == 1 ? "" : "s");
  for (const auto& [reason, count] : counts)
    text += fmt::format("{}{} {}", text.ends_with(':') ? " " : ", ", format_count(count), reason);
  return text;
}

std::string skipped_csv(std::span<const SkippedSample> skipped) {
  std::string text = "path,kind,reason\n";
  for (const SkippedSample& sample : skipped)
    text += fmt::format("{},{},{}\n", csv_field(sample.name), name_of(sample.kind), csv_field(sample.reason));
  return text;
}

}  // namespace tandem
