// TimedGroup: a group that measures how long this process is in its operations: waiting for other ranks,
// moving and adding data. The operations are bars of the timeline, if there is one.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/data/loader/timeline.h"
#include "tandem/dist/group.h"

namespace tandem {

// The name of this thread's exchanges on the timeline while the object lives; it must outlive the timeline.
class ExchangeName {
 public:
  explicit ExchangeName(const char* name) : before_(std::exchange(current_, name)) {}
  ~ExchangeName() { current_ = before_; }
  ExchangeName(const ExchangeName&) = delete;
  ExchangeName& operator=(const ExchangeName&) = delete;

  static const char* current() { return current_; }

 private:
  static inline thread_local const char* current_ = "agree";
  const char* before_;
};

// Sums are measured where they are waited for. What GPUs exchange by NCCL is not measured.
class TimedGroup : public Group {
 public:
  // Both outlive this object; the timeline may be null.
  TimedGroup(Group& group, Timeline* timeline);

  const std::vector<Place>& places() const override { return group_.places(); }
  Work reduce(const Partials& mine, const Tensor& out) override;
  bool sums_in_background() const override { return group_.sums_in_background(); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void broadcast(std::span<std::byte> bytes, int from) override;
  void fail(std::string_view why) noexcept override { group_.fail(why); }
  void throw_if_failed() override { group_.throw_if_failed(); }

  double waited_ms() const { return static_cast<double>(waited_ns_) / 1e6; }

 private:
  class TimedWork;
  template <class F>
  void measure(const char* name, F&& operation);

  Group& group_;
  Timeline* timeline_;
  std::int64_t waited_ns_ = 0;
};

}  // namespace tandem
