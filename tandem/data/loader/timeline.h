// A timeline of training: what the trainer, its workers and a GPU did and when, all on CLOCK_MONOTONIC. Used
// by the trainer's thread only; workers leave their times in the ring (LoadedBlock). Bounded: only the first
// bars are kept, and the text says so.
//
// GPU times come from events on its streams. They are read in collect(), when the trainer has synchronized
// with the GPU anyway, relative to an event whose host time is known. So neither clock drift nor the low
// resolution of CUDA's float milliseconds grows with the length of the run.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/device/stream.h"
#include "tandem/report/trace.h"

namespace tandem {

// The rows, from top to bottom.
enum class TrackKind { note, trainer, exchange, device, copies, worker };

struct Track {
  TrackKind kind = TrackKind::trainer;
  int number = 0;  // of the GPU or worker

  friend auto operator<=>(const Track&, const Track&) = default;
};

// The range of a bar: `count` steps or positions of an epoch from `first` on, all counted from 0.
struct TimelineRange {
  const char* what = nullptr;  // "steps", "positions"; null: the bar has no range
  std::int64_t epoch = 0, first = 0, count = 0;
};

class Timeline {
 public:
  // A point in time on a stream, known once the stream has reached it; null when the timeline is full.
  using Mark = std::shared_ptr<Event>;

  static constexpr std::size_t default_max_bars = 200'000;
  explicit Timeline(std::size_t max_bars = default_max_bars);

  // Times are those of monotonic_ns(). `name` must outlive the timeline.
  void add(Track track, const char* name, std::int64_t begin_ns, std::int64_t end_ns,
           const TimelineRange& range);

  Mark mark(StreamView stream);
  // A bar between two marks on streams of `device`. The bars of a track must be added in order.
  void add(Track track, const char* name, Mark begin, Mark end, Device device, const TimelineRange& range);
  // Waits for the marks and reads their times.
  void collect();

  // Begins a bar of the trainer, and on a GPU stream also one for the work queued there until end().
  void begin(const char* name, const TimelineRange& range, StreamView stream);
  void end();  // does nothing without begin()

  std::size_t size() const { return bars_.size() + pending_.size(); }
  bool stopped() const { return stopped_ns_ != 0; }    // the timeline was full and bars were dropped
  std::int64_t start_ns() const { return start_ns_; }  // when it was constructed
  // Chrome's trace format; times count from the construction of the timeline. Without marks not yet
  // collected.
  std::string to_text() const;
  // The bars of each track in order, with times from `origin_ns` on.
  std::vector<TraceEvent> events(std::int64_t origin_ns) const;

 private:
  struct Bar {
    Track track;
    const char* name;
    std::int64_t begin_ns, end_ns;
    TimelineRange range;
  };
  struct Pending {  // a bar whose times are not collected yet
    Bar bar;
    Mark begin, end;
    Device device;
  };
  struct OpenBar {
    const char* name;
    TimelineRange range;
    StreamView stream;
    std::int64_t begin_ns;
    Mark begin;
  };

  bool has_room();

  std::size_t max_bars_;
  std::int64_t start_ns_, stopped_ns_ = 0;
  std::vector<Bar> bars_;
  std::vector<Pending> pending_;
  std::map<Track, std::int64_t> collected_;  // the end of each track's last bar
  std::optional<OpenBar> open_;
};

// A bar of the trainer for the lifetime of this object; does nothing without a timeline.
class TimelineSpan {
 public:
  TimelineSpan(Timeline* timeline, const char* name, const TimelineRange& range);
  ~TimelineSpan();
  TimelineSpan(const TimelineSpan&) = delete;
  TimelineSpan& operator=(const TimelineSpan&) = delete;

 private:
  Timeline* timeline_;
  const char* name_;
  TimelineRange range_;
  std::int64_t begin_ns_ = 0;
};

}  // namespace tandem
