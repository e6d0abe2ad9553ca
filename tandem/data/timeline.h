// A timeline of training: what the trainer, its workers and a GPU did and when, all on CLOCK_MONOTONIC. A
// plain collection for one thread, the trainer's: workers leave their times in the ring (LoadedBlock).
// Bounded: only the first bars are kept, and the text says so.
//
// A GPU's times come from events on its streams. They are read in collect(), when the trainer has waited for
// the GPU anyway, and tied to the host's clock there: so neither the clocks' drift nor the few digits of
// CUDA's times grow with the length of the run.
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

namespace tandem {

// The rows, from the top down.
enum class TrackKind { note, trainer, device, copies, worker };

struct Track {
  TrackKind kind = TrackKind::trainer;
  int number = 0;  // of the GPU or worker

  friend auto operator<=>(const Track&, const Track&) = default;
};

// What a bar is about: `count` steps or positions of an epoch from `first` on, all counted from 0.
struct TimelineRange {
  const char* what = nullptr;  // "steps", "positions"; none: nothing of the kind
  std::int64_t epoch = 0, first = 0, count = 0;
};

class Timeline {
 public:
  // A moment on a stream, known when the stream has come there; none when there is no room for more bars.
  using Mark = std::shared_ptr<Event>;

  explicit Timeline(std::size_t most_bars = 200'000);

  // Times as monotonic_ns() gives them. Names must last.
  void add(Track track, const char* name, std::int64_t begin_ns, std::int64_t end_ns,
           const TimelineRange& range);

  Mark mark(StreamView stream);
  // Between two marks on streams of `device`. A track's bars must come in their order.
  void add(Track track, const char* name, Mark begin, Mark end, Device device, const TimelineRange& range);
  // Waits for the marks and reads their times.
  void collect();

  // What the trainer does until end(): a bar of its own, and one of the GPU if `stream` is a GPU's, for the
  // work put there meanwhile.
  void begin(const char* name, const TimelineRange& range, StreamView stream);
  void end();  // nothing when nothing has begun

  std::size_t size() const { return bars_.size() + pending_.size(); }
  bool stopped() const { return stopped_ns_ != 0; }  // bars were left out
  // Chrome's trace format; times count from the making of the timeline. What is not collected is not in it.
  std::string to_text() const;

 private:
  struct Bar {
    Track track;
    const char* name;
    std::int64_t begin_ns, end_ns;
    TimelineRange range;
  };
  struct Pending {  // its times are to come
    Bar bar;
    Mark begin, end;
    Device device;
  };
  struct Begun {
    const char* name;
    TimelineRange range;
    StreamView stream;
    std::int64_t begin_ns;
    Mark begin;
  };

  bool has_room();

  std::size_t most_;
  std::int64_t start_ns_, stopped_ns_ = 0;
  std::vector<Bar> bars_;
  std::vector<Pending> pending_;
  std::map<Track, std::int64_t> collected_;  // the end of the last bar
  std::optional<Begun> begun_;
};

// Something the trainer does while this lives; nothing without a timeline.
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
