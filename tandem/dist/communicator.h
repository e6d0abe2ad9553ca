// Communicator: the thread of a rank that owns the transport, and the operations under way.
//
// There are two lanes. Small operations are advanced together with notices and heartbeats, sums by
// themselves, so that neither waits for the other. Each is advanced by one thread at a time: the
// communication thread, so that sums go on and heartbeats are sent while the rank computes; or, where the
// transport allows it, by the thread that waits for an operation, which saves two context switches per wait.
// The communication thread leaves a lane to those who wait in it.
#pragma once

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
  enum class Lane { small, sums };
  // Makes a piece of an operation when it starts.
  using MakePiece = std::function<std::unique_ptr<Operation>(std::int64_t piece)>;

  struct Job {
    Lane lane = Lane::small;
    std::string name;  // "a sum"
    std::int64_t pieces = 1;
    MakePiece make;
    std::int64_t started = 0, finished = 0;
    bool failed = false;
    std::atomic<bool> done{false};
  };

  struct Options {
    double start_limit_s = 60;  // until the transport is open, and until begin_watch() as the stall limit
    double end_limit_s = 300;   // until all ranks leave, where they do so together
    bool sums_use_transport = true;  // false: sums call no function of the transport
  };

  // `open` is called on the communication thread. Throws what it throws, and LostRank when it does not return
  // within the limit; then its thread is left to itself, and the process should end.
  Communicator(std::function<TandemTransport()> open, const Options& options);
  // Leaves the group. Operations under way are given up.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  Transport& transport() { return *transport_; }  // for the operations that a job makes

  // Starts to watch the other ranks. An operation in which nothing happens for `stall_limit_s` fails.
  void begin_watch(std::vector<Place> places, double limit_s, double stall_limit_s, std::vector<int> visible);

  // Whether threads that wait may keep a CPU busy; not before begin_watch().
  bool may_spin() const { return may_spin_; }

  // Jobs of one lane are done in the order in which they start, some pieces at a time.
  std::shared_ptr<Job> start(Lane lane, std::string name, std::int64_t pieces, MakePiece make);
  // Error with the group's failure when the job was not completed before it.
  void wait(Job& job);
  // Error with the group's failure, if there is one. Any thread may call it.
  void throw_if_failed();
  // Tells all ranks that the group cannot go on.
  void fail(const std::string& text) noexcept;

 private:
  struct Running {
    std::shared_ptr<Job> job;
    std::unique_ptr<Operation> operation;
  };
  struct LaneState {
    std::size_t max_running;
    std::mutex mutex;                          // of what follows
    std::deque<std::shared_ptr<Job>> waiting;  // jobs with pieces that have not started
    std::vector<Running> running;              // in the order in which they started
    std::int64_t stalled_ns = 0, last_ns = 0;
  };

  // What the constructor and its thread share until the transport is open.
  struct Opening {
    std::function<TandemTransport()> open;
    std::mutex mutex;
    std::condition_variable changed;
    std::exception_ptr error;
    bool done = false, abandoned = false;
  };

  bool open_transport(Opening& opening);
  void run();
  void leave();
  void await_others();
  bool has_arrivals();
  bool backs_off() const;
  void poll_later(std::unique_lock<std::mutex>& lock, std::int64_t idle_ns);
  template <class Condition>
  void sleep(std::unique_lock<std::mutex>& lock, std::int64_t max_ns, Condition&& condition);
  void pause(std::uint32_t seen, std::int64_t spin_ns) const;
  bool progress_small();
  bool progress_sums();
  bool advance(LaneState& lane);
  bool is_stalled(LaneState& lane, bool moved) const;
  std::optional<GroupFailure> describe_stall(const LaneState& lane) const;
  GroupFailure own_failure(const std::string& text) const;
  GroupFailure explain(const std::string& error);
  void set_failure(GroupFailure failure);
  void give_up(LaneState& lane);
  void flush_notices();
  void finish(Job& job);
  void wait_until_done(const Job& job);
  void drive_until_done(Job& job);

  int rank_ = 0, size_ = 1;
  bool any_thread_ = false;
  const bool sums_use_transport_;
  const std::int64_t end_limit_ns_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Watch> watch_;

  // Locked in this order: sums_.mutex, small_.mutex. The latter is also that of the transport, the watch and
  // what follows it here.
  LaneState sums_{.max_running = 3};
  LaneState small_{.max_running = 64};
  std::condition_variable changed_;
  std::function<void()> begin_watch_;  // to be called by progress_small()
  std::optional<GroupFailure> failure_, requested_failure_;

  std::mutex arriving_mutex_;  // of arriving_: start() never waits for an operation
  std::deque<std::shared_ptr<Job>> arriving_;
  std::atomic<std::int64_t> stall_limit_ns_;
  std::atomic<bool> failed_{false}, stopping_{false};
  std::atomic<bool> may_spin_{false};             // there are CPUs enough for the communication threads
  std::atomic<bool> asleep_{false};               // the communication thread waits for `changed_`
  std::atomic<int> open_sums_{0};                 // jobs that are not done
  std::atomic<int> waiters_{0}, sum_waiters_{0};  // threads that wait, and advance operations if they may
  std::thread thread_;
};

}  // namespace tandem
