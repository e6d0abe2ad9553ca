// A timeline in Chrome's trace format for chrome://tracing and Perfetto: one row per track, one bar per
// event.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tandem/report/fact.h"

namespace tandem {

struct TraceEvent {
  std::string track;    // row of the timeline: "worker 3", "GPU copies"
  std::string name;     // label of the bar
  double begin_us = 0;  // all events on one clock
  double duration_us = 0;
  std::vector<Fact> args;  // shown when the bar is clicked
};

// A process, which has tracks of its own.
struct TraceProcess {
  int id = 1;  // processes are ordered by it
  std::string name = {};
  std::string label = {};  // beside the name
};

// The part of a process, for trace_file(). Tracks are ordered by first appearance. Events with non-finite
// times are left out.
std::string trace_lines(const TraceProcess& process, std::span<const TraceEvent> events);

// A trace of the trace_lines() of its processes.
std::string trace_file(std::span<const std::string> processes);

// A trace of one process.
std::string to_trace_text(std::span<const TraceEvent> events);

}  // namespace tandem
