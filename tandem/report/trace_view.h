// A timeline that is small enough for a page, however long it is, as JSON:
//   {"lanes": [{"name": "worker 0", "names": ["load", …], "spans": [[name, begin, end, count, busy], …]}, …],
//    "complete": true}
// Times are in milliseconds; `name` is an index of the lane's names. Where a lane has too many bars, those of
// a stretch of time and a name are one span with their count and the time they took, and the spans of a
// stretch stand one after the other.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tandem/report/trace.h"

namespace tandem {

inline constexpr std::size_t max_view_spans = 6000;  // of all lanes
inline constexpr std::size_t max_view_lanes = 64;    // of a process; later ones are left out

// The lanes of a process, for trace_view(). `process` stands before the name of each lane, if it is not
// empty. Events of a track are in order and do not overlap.
std::string trace_lanes(const std::string& process, std::span<const TraceEvent> events,
                        std::size_t max_spans = max_view_spans);

// The whole of them. `complete` is false if bars were dropped before.
std::string trace_view(std::span<const std::string> lanes, bool complete);

}  // namespace tandem
