// The timelines of all ranks in one trace: a process per rank, all on the clock of rank 0.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tandem/data/loader/timeline.h"
#include "tandem/dist/group.h"

namespace tandem {

// How far the clock of this rank is behind that of rank 0.
struct ClockOffset {
  std::int64_t ns = 0;
  std::int64_t error_ns = 0;  // at most; 0: the same clock
};

// Ranks of one host share a clock. Otherwise the ranks send each other their times: what a rank receives was
// sent before. All ranks call this together.
ClockOffset measure_clock_offset(Group& group, const std::function<std::int64_t()>& clock_ns);

struct RankTrace {
  std::string text;      // Chrome's trace format; of rank 0 only
  std::string view;      // trace_view(), trace_view.h; of rank 0 only
  std::size_t bars = 0;  // of all ranks
  bool stopped = false;  // a timeline was full and bars were dropped
};

// All ranks call this together.
RankTrace gather_trace(Group& group, const Timeline& timeline, const ClockOffset& offset);

}  // namespace tandem
