#include "tandem/train/rank_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <vector>

#include "tandem/report/trace.h"
#include "tandem/report/trace_view.h"
#include "tandem/train/ranks.h"

namespace tandem {
namespace {

template <class T>
std::vector<T> gather(Group& group, const T& mine) {
  std::vector<T> all(group.places().size());
  group.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

TraceProcess process_of(const Place& place, const ClockOffset& offset) {
  return {.id = place.rank,
          .name = fmt::format("rank {} on {}", place.rank, place.host),
          .label = offset.error_ns > 0
                       ? fmt::format("clock ± {:.0f} µs", static_cast<double>(offset.error_ns) / 1e3)
                       : ""};
}

}  // namespace

// With d = (clock of rank 0) − (own clock): a time s₀ that rank 0 sent is received later, at own time a, so
// d ≥ s₀ − a; a time s that this rank sent is received by rank 0 at a₀, so d ≤ a₀ − s. The narrowest bounds
// of a few exchanges count.
ClockOffset measure_clock_offset(Group& group, const std::function<std::int64_t()>& clock_ns) {
  const std::vector<Place>& places = group.places();
  if (std::ranges::all_of(places, [&](const Place& one) { return one.host == places[0].host; })) return {};
  constexpr std::size_t rounds = 16;
  std::array<std::int64_t, rounds> sent{}, sent_by_first{}, received{};
  for (std::size_t i = 0; i < rounds; ++i) {
    sent[i] = clock_ns();
    sent_by_first[i] = gather(group, sent[i])[0];
    received[i] = clock_ns();
  }
  const std::array<std::int64_t, rounds> received_by_first = gather(group, received)[0];
  if (group.place().host == places[0].host) return {};
  std::int64_t low = std::numeric_limits<std::int64_t>::min(), high = -(low + 1);
  for (std::size_t i = 0; i < rounds; ++i) {
    low = std::max(low, sent_by_first[i] - received[i]);
    high = std::min(high, received_by_first[i] - sent[i]);
  }
  return {.ns = low + (high - low) / 2, .error_ns = std::max<std::int64_t>((high - low + 1) / 2, 1)};
}

RankTrace gather_trace(Group& group, const Timeline& timeline, const ClockOffset& offset) {
  struct Wire {
    std::int64_t start_ns = 0, bars = 0, stopped = 0;
  };
  RankTrace trace;
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  for (const Wire& one : gather(group, Wire{.start_ns = timeline.start_ns() + offset.ns,
                                       .bars = static_cast<std::int64_t>(timeline.size()),
                                       .stopped = timeline.stopped()})) {
    first_ns = std::min(first_ns, one.start_ns);
    trace.bars += static_cast<std::size_t>(one.bars);
    trace.stopped |= one.stopped != 0;
  }
  const TraceProcess process = process_of(group.place(), offset);
  const std::vector<TraceEvent> events = timeline.events(first_ns - offset.ns);
  const std::vector<std::string> lines = collect_texts(group, trace_lines(process, events));
  const std::vector<std::string> lanes =
      collect_texts(group, trace_lanes(process.name, events, max_view_spans / group.places().size()));
  if (group.place().rank != 0) return trace;
  trace.text = trace_file(lines);
  trace.view = trace_view(lanes, !trace.stopped);
  return trace;
}

}  // namespace tandem
