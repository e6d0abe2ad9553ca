// One JSON object per line, serialized one at a time because a run has many events.
#include "tandem/report/trace.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

Json metadata(const char* what, int process, int row, const char* key, Json value) {
  return {{"ph", "M"}, {"pid", process}, {"tid", row}, {"name", what}, {"args", {{key, std::move(value)}}}};
}

Json bar(const TraceEvent& event, int process, int row) {
  Json object{{"ph", "X"},          {"pid", process},       {"tid", row},
              {"name", event.name}, {"ts", event.begin_us}, {"dur", event.duration_us}};
  for (const Fact& fact : event.args) object["args"][fact.name] = fact.value;
  return object;
}

}  // namespace

std::string trace_lines(const TraceProcess& process, std::span<const TraceEvent> events) {
  std::string text;
  const auto add = [&](const Json& object) {
    if (!text.empty()) text += ",\n";
    text += object.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  const int id = process.id;
  if (!process.name.empty()) {
    add(metadata("process_name", id, 0, "name", process.name));
    add(metadata("process_sort_index", id, 0, "sort_index", id));
  }
  if (!process.label.empty()) add(metadata("process_labels", id, 0, "labels", process.label));
  std::unordered_map<std::string, int> rows;
  for (const TraceEvent& event : events) {
    if (!std::isfinite(event.begin_us) || !std::isfinite(event.duration_us)) continue;
    const auto [found, fresh] = rows.try_emplace(event.track, static_cast<int>(rows.size()) + 1);
    const int row = found->second;
    if (fresh) {
      add(metadata("thread_name", id, row, "name", event.track));
      add(metadata("thread_sort_index", id, row, "sort_index", row));
    }
    add(bar(event, id, row));
  }
  return text;
}

std::string trace_file(std::span<const std::string> processes) {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  const char* before = "\n";
  for (const std::string& lines : processes) {
    if (lines.empty()) continue;
    text += before + lines;
    before = ",\n";
  }
  return text + "\n]}\n";
}

std::string to_trace_text(std::span<const TraceEvent> events) {
  const std::string lines = trace_lines({}, events);
  return trace_file({&lines, 1});
}

}  // namespace tandem
