// A timeline in Chrome's trace format, which chrome://tracing and Perfetto open: a row a track, a bar an
// event. Knows nothing of how the events were measured.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tandem/report/fact.h"

namespace tandem {

struct TraceEvent {
  std::string track;    // its row: "worker 3", "GPU copies"
  std::string name;     // what the bar says
  double begin_us = 0;  // all events on one clock
  double duration_us = 0;
  std::vector<Fact> args;  // shown when the bar is clicked
};

// Rows stand in the order in which their tracks first appear. An event whose times are not finite is left
// out.
std::string to_trace_text(std::span<const TraceEvent> events);

}  // namespace tandem
