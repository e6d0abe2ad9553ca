#include "tandem/report/trace_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

struct Span {
  std::size_t name = 0;
  double begin_ms = 0, end_ms = 0, busy_ms = 0;
  std::int64_t count = 0;
};

struct Lane {
  std::string name;
  std::vector<std::string> names;
  std::vector<Span> spans;
};

std::size_t index_of(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

// The spans with those of each stretch of `stretch_ms` and each name as one.
std::vector<Span> merged(const std::vector<Span>& spans, double stretch_ms) {
  std::vector<Span> result;
  std::vector<Span> stretch;  // by name
  double place = -1;
  const auto flush = [&] {
    if (std::ranges::any_of(stretch, [](const Span& span) { return span.count > 1; })) {
      double at = stretch.front().begin_ms;
      for (Span& span : stretch) {
        span.begin_ms = at;
        at = span.end_ms = at + span.busy_ms;
      }
    }
    result.insert(result.end(), stretch.begin(), stretch.end());
    stretch.clear();
  };
  for (const Span& span : spans) {
    const double its_place = std::floor(span.begin_ms / stretch_ms);
    if (its_place != place) flush();
    place = its_place;
    const auto same = std::ranges::find(stretch, span.name, &Span::name);
    if (same == stretch.end()) {
      stretch.push_back(span);
    } else {
      same->busy_ms += span.busy_ms;
      same->count += span.count;
    }
  }
  flush();
  return result;
}

void reduce(Lane& lane, std::size_t max_spans) {
  if (lane.spans.size() <= max_spans) return;
  const double all_ms = lane.spans.back().begin_ms - lane.spans.front().begin_ms;
  const std::vector<Span> bars = std::move(lane.spans);
  double stretch_ms = std::max(all_ms / static_cast<double>(max_spans), 1e-6);
  do {
    lane.spans = merged(bars, stretch_ms);
    stretch_ms *= 2;
  } while (lane.spans.size() > max_spans && stretch_ms < 4 * std::max(all_ms, 1.0));
  if (lane.spans.size() > max_spans) lane.spans.resize(max_spans);  // more names than spans
}

Json to_json(const Lane& lane) {
  const auto rounded = [](double ms) { return std::round(1e3 * ms) / 1e3; };
  Json spans = Json::array();
  for (const Span& span : lane.spans)
    spans.push_back(
        {span.name, rounded(span.begin_ms), rounded(span.end_ms), span.count, rounded(span.busy_ms)});
  return {{"name", lane.name}, {"names", lane.names}, {"spans", std::move(spans)}};
}

}  // namespace

std::string trace_lanes(const std::string& process, std::span<const TraceEvent> events,
                        std::size_t max_spans) {
  std::vector<std::string> tracks;
  std::vector<Lane> lanes;
  for (const TraceEvent& event : events) {
    if (!std::isfinite(event.begin_us) || !std::isfinite(event.duration_us)) continue;
    const std::size_t track = index_of(tracks, event.track);
    if (track >= max_view_lanes) continue;
    if (track == lanes.size())
      lanes.push_back(
          {.name = process.empty() ? event.track : process + ": " + event.track, .names = {}, .spans = {}});
    Lane& lane = lanes[track];
    lane.spans.push_back({.name = index_of(lane.names, event.name),
                          .begin_ms = event.begin_us / 1e3,
                          .end_ms = (event.begin_us + event.duration_us) / 1e3,
                          .busy_ms = event.duration_us / 1e3,
                          .count = 1});
  }
  std::string text;
  for (Lane& lane : lanes) {
    reduce(lane, std::max<std::size_t>(max_spans / lanes.size(), 20));
    text += (text.empty() ? "" : ",\n") + to_json(lane).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return text;
}

std::string trace_view(std::span<const std::string> lanes, bool complete) {
  std::string text;
  for (const std::string& some : lanes)
    if (!some.empty()) text += (text.empty() ? "" : ",\n") + some;
  return fmt::format("{{\"lanes\": [\n{}\n], \"complete\": {}}}\n", text, complete);
}

}  // namespace tandem
