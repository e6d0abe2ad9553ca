#include "tandem/data/loader/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tandem/core/clock.h"
#include "tandem/core/error.h"
#include "tandem/text/format_number.h"

namespace tandem {
namespace {

std::string name_of(const Track& track) {
  switch (track.kind) {
    case TrackKind::note:
      return "trace";
    case TrackKind::trainer:
      return "trainer";
    case TrackKind::exchange:
      return "exchange";
    case TrackKind::device:
      return cuda_device(track.number).to_string();
    case TrackKind::copies:
      return cuda_device(track.number).to_string() + " copies";
    case TrackKind::worker:
      break;
  }
  return fmt::format("worker {}", track.number);
}

std::vector<Fact> facts_of(const TimelineRange& range) {
  if (!range.what) return {};
  return {{"epoch", std::to_string(range.epoch + 1)},
          {range.what, fmt::format("{} to {}", range.first + 1, range.first + range.count)}};
}

// An event whose time on the host's clock is known.
struct Reference {
  Event event;
  std::int64_t ns = 0;

  // The event's time lies between two readings of the host's clock. The host may be preempted between them,
  // so the narrowest of a few attempts is used.
  static Reference measure(Device device) {
    std::optional<Reference> best;
    std::int64_t best_width = 0;
    for (int attempt = 0; attempt < 3; ++attempt) {
      Event event(device);
      const std::int64_t before = monotonic_ns();
      event.record(current_stream(device));
      event.synchronize();
      const std::int64_t width = monotonic_ns() - before;
      if (best && width >= best_width) continue;
      best.emplace(Reference{std::move(event), before + width / 2});
      best_width = width;
    }
    return std::move(*best);
  }

  std::int64_t time_of(const Event& earlier) const {
    return ns - static_cast<std::int64_t>(1e6 * event.elapsed_ms_since(earlier));
  }
};

}  // namespace

Timeline::Timeline(std::size_t max_bars) : max_bars_(max_bars), start_ns_(monotonic_ns()) {}

bool Timeline::has_room() {
  if (size() < max_bars_) return true;
  if (!stopped()) stopped_ns_ = monotonic_ns();
  return false;
}

void Timeline::add(Track track, const char* name, std::int64_t begin_ns, std::int64_t end_ns,
                   const TimelineRange& range) {
  if (has_room()) bars_.push_back({track, name, begin_ns, end_ns, range});
}

Timeline::Mark Timeline::mark(StreamView stream) {
  if (!has_room()) return nullptr;
  auto event = std::make_shared<Event>(stream.device);
  event->record(stream);
  return event;
}

void Timeline::add(Track track, const char* name, Mark begin, Mark end, Device device,
                   const TimelineRange& range) {
  if (begin && end && has_room())
    pending_.push_back({{track, name, 0, 0, range}, std::move(begin), std::move(end), device});
}

void Timeline::collect() {
  if (pending_.empty()) return;
  for (const Pending& pending : pending_) pending.end->synchronize();
  const Device device = pending_.front().device;
  const Reference reference = Reference::measure(device);
  for (Pending& pending : pending_) {
    expect(pending.device == device);
    Bar& bar = pending.bar;
    std::int64_t& last = collected_[bar.track];  // references differ by microseconds; bars must not overlap
    bar.begin_ns = std::max(last, reference.time_of(*pending.begin));
    bar.end_ns = last = std::max(bar.begin_ns, reference.time_of(*pending.end));
    bars_.push_back(bar);
  }
  pending_.clear();
}

void Timeline::begin(const char* name, const TimelineRange& range, StreamView stream) {
  expect(!open_);
  open_ = {name, range, stream, monotonic_ns(), stream.device.is_cuda() ? mark(stream) : nullptr};
}

void Timeline::end() {
  if (!open_) return;
  const OpenBar bar = *std::exchange(open_, std::nullopt);
  add({TrackKind::trainer}, bar.name, bar.begin_ns, monotonic_ns(), bar.range);
  const Device device = bar.stream.device;
  if (bar.begin)
    add({TrackKind::device, device.index}, bar.name, bar.begin, mark(bar.stream), device, bar.range);
}

std::string Timeline::to_text() const {
  return to_trace_text(events(start_ns_));
}

std::vector<TraceEvent> Timeline::events(std::int64_t origin_ns) const {
  std::vector<Bar> bars = bars_;
  std::ranges::stable_sort(bars, {}, [](const Bar& bar) { return std::pair(bar.track, bar.begin_ns); });
  std::vector<TraceEvent> events;
  const auto add_event = [&](const Bar& bar, std::vector<Fact> facts) {
    events.push_back({.track = name_of(bar.track),
                      .name = bar.name,
                      .begin_us = static_cast<double>(bar.begin_ns - origin_ns) / 1e3,
                      .duration_us = static_cast<double>(bar.end_ns - bar.begin_ns) / 1e3,
                      .args = std::move(facts)});
  };
  if (stopped())
    add_event({{TrackKind::note}, "stopped", stopped_ns_, monotonic_ns(), {}},
              {{"why", fmt::format("only the first {} bars are kept",
                                   format_count(static_cast<std::int64_t>(max_bars_)))}});
  const Bar* before = nullptr;
  for (const Bar& bar : bars) {
    const bool same_worker = before && bar.track.kind == TrackKind::worker && before->track == bar.track;
    if (same_worker && before->end_ns < bar.begin_ns)
      add_event({bar.track, "wait for a job", before->end_ns, bar.begin_ns, {}}, {});
    add_event(bar, facts_of(bar.range));
    before = &bar;
  }
  return events;
}

TimelineSpan::TimelineSpan(Timeline* timeline, const char* name, const TimelineRange& range)
    : timeline_(timeline), name_(name), range_(range), begin_ns_(timeline ? monotonic_ns() : 0) {}

TimelineSpan::~TimelineSpan() {
  if (timeline_) timeline_->add({TrackKind::trainer}, name_, begin_ns_, monotonic_ns(), range_);
}

}  // namespace tandem
