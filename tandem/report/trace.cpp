// One JSON object per line, serialized one at a time because a run has many events.
#include "tandem/report/trace.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json metadata(const char* what, int row, const char* key, Json value) {
  return {{"ph", "M"}, {"pid", 1}, {"tid", row}, {"name", what}, {"args", {{key, std::move(value)}}}};
}

Json bar(const TraceEvent& event, int row) {
  Json object{{"ph", "X"},
              {"pid", 1},
              {"tid", row},
              {"name", event.name},
              {"ts", event.begin_us},
              {"dur", event.duration_us}};
  for (const Fact& fact : event.args) object["args"][fact.name] = fact.value;
  return object;
}

}  // namespace

std::string to_trace_text(std::span<const TraceEvent> events) {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  const char* before = "\n";
  const auto add = [&](const Json& object) {
    text += before + object.dump(-1, ' ', false, Json::error_handler_t::replace);
    before = ",\n";
  };
  std::unordered_map<std::string, int> rows;
  for (const TraceEvent& event : events) {
    if (!std::isfinite(event.begin_us) || !std::isfinite(event.duration_us)) continue;
    const auto [found, fresh] = rows.try_emplace(event.track, static_cast<int>(rows.size()) + 1);
    const int row = found->second;
    if (fresh) {
      add(metadata("thread_name", row, "name", event.track));
      add(metadata("thread_sort_index", row, "sort_index", row));
    }
    add(bar(event, row));
  }
  return text + "\n]}\n";
}

}  // namespace tandem
