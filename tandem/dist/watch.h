// Watch: who of the other ranks is alive, and what they say went wrong.
//
// - Every rank sends heartbeats to the next one. A rank whose heartbeats do not come for `limit_s` is lost:
//   its process is stopped, or its node or network is gone.
// - Where the transport can tell, or the process is one of this node, a rank whose process ended is lost at
//   once.
// - A rank that fails, leaves the group or finds another one lost sends a notice to all others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/dist/operation.h"
#include "tandem/dist/place.h"
#include "tandem/dist/process_end.h"

namespace tandem {

// Why a group cannot go on.
struct GroupFailure {
  std::string text;
  bool lost_rank = false;  // a rank is gone: starting again may help
  bool is_known = false;   // to the other ranks as well
};

class Watch {
 public:
  explicit Watch(Transport& transport);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Starts to send and expect heartbeats; all ranks are there. `places` names them; the ends of the processes
  // of the ranks `visible` can be seen by this one.
  void begin(std::vector<Place> places, double limit_s, const std::vector<int>& visible = {});

  // Reads notices, sends and counts heartbeats. A failure is returned once.
  std::optional<GroupFailure> advance();

  // Tells all other ranks why this group cannot go on, or that this rank leaves it. The text is cut to one
  // message.
  void send_failure(const GroupFailure& failure);
  void send_leave();
  // Whether all of that is on its way.
  bool sent();

  bool has_left(int rank) const { return peer(rank).left; }
  // A rank that has not left; −1 when all others have.
  int first_here() const;
  // "rank 3 (host n2, process 4711)"; "rank 3" before begin().
  std::string describe(int rank) const;
  // How often advance() must be called.
  std::int64_t interval_ns() const { return interval_ns_; }

 private:
  enum class Kind : std::int32_t { failure, lost, leave };
  struct Notice {
    Kind kind;
    std::int32_t length;
    char text[1016];
  };
  struct Peer {
    Notice notice{};
    Request receive;
    bool left = false;
    ProcessEnd process;
    std::int64_t ended_ns = 0;  // when its end was first seen
  };

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& peer(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }
  void send_notice(Kind kind, const std::string& text);
  std::optional<GroupFailure> read_notice(int from);
  std::optional<GroupFailure> find_ended(std::int64_t now);
  bool has_ended(int rank, std::int64_t now);
  std::optional<GroupFailure> count_heartbeats(std::int64_t passed_ns);

  Transport* transport_;
  std::vector<Place> places_;
  std::vector<Peer> peers_;
  Notice outgoing_{};
  RequestSet notices_;

  std::int64_t limit_ns_ = 0, interval_ns_ = 50'000'000;
  std::int64_t last_ns_ = 0;        // when advance() last looked at the clock
  std::int64_t silent_ns_ = 0;      // since the last heartbeat, while this process itself was running
  std::int64_t until_beat_ns_ = 0;  // until the next one is sent
  std::int64_t beat_sent_ = 0, beat_received_ = 0;
  Request send_, receive_;
};

}  // namespace tandem
