// Communicator: the thread of a rank that owns the transport, and the operations under way.
//
// Operations are advanced, notices read and heartbeats sent in one function, progress(), by one thread at a
// time. That is the communication thread, so that sums go on while the rank computes; and where the transport
// allows it, a thread that waits for an operation does it itself, which saves two context switches per wait.
// All calls of the transport happen there.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tandem/dist/operation.h"
#include "tandem/dist/watch.h"

namespace tandem {

class Communicator {
 public:
  // An operation in one or more pieces, which are made when they start.
  struct Job {
    std::string name;  // "reduce"
    std::int64_t pieces = 1;
    std::function<std::unique_ptr<Operation>(std::int64_t piece)> make;
    std::int64_t started = 0, finished = 0;
    bool failed = false;
    std::atomic<bool> done{false};
  };
  // Jobs of one lane are done in order, several pieces at a time. Small operations do not wait for sums.
  enum class Lane { small, sums };

  // `open` is called on the communication thread; Error when it throws. An operation in which no rank does
  // anything for `stall_limit_s` fails.
  Communicator(const std::function<TandemTransport()>& open, double stall_limit_s);
  // Leaves the group. Operations under way are given up.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  Transport& transport() { return *transport_; }  // for the operations that a job makes

  // Starts to watch the other ranks.
  void begin_watch(std::vector<Place> places, double limit_s, double stall_limit_s);

  std::shared_ptr<Job> start(Lane lane, std::string name, std::int64_t pieces,
                             std::function<std::unique_ptr<Operation>(std::int64_t piece)> make);
  // Error with the group's failure when the job has not been completed before it.
  void wait(Job& job);
  // Tells all ranks that the group cannot go on.
  void fail(const std::string& text) noexcept;

 private:
  struct Running {
    std::shared_ptr<Job> job;
    std::unique_ptr<Operation> operation;
  };
  struct LaneState {
    std::deque<std::shared_ptr<Job>> waiting;  // jobs with pieces that have not started
    std::vector<Running> running;              // in the order in which they started
  };

  void run(const std::function<TandemTransport()>& open);
  void leave();
  bool progress();
  void start_pieces(LaneState& lane, std::size_t max_running);
  bool advance_running(LaneState& lane);
  void check_stall(bool moved);
  void set_failure(GroupFailure failure);
  void flush_notices();
  void finish(Job& job);
  void drive_until_done(Job& job);
  void pause(std::uint32_t seen, bool spin);
  const Running* oldest() const;

  int rank_ = 0, size_ = 1;
  bool any_thread_ = false;
  std::int64_t spin_ns_ = 0;

  std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Watch> watch_;
  std::array<LaneState, 2> lanes_;
  std::function<void()> begin_watch_;  // to be called by progress()
  std::optional<GroupFailure> failure_;
  std::optional<GroupFailure> requested_failure_;
  std::int64_t stall_limit_ns_;
  std::int64_t stalled_ns_ = 0, last_ns_ = 0;
  std::exception_ptr open_error_;
  bool opened_ = false, stopping_ = false;
  std::atomic<int> waiters_{0};  // threads that call progress() themselves
  std::thread thread_;
};

}  // namespace tandem
