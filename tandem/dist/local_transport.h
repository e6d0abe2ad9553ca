// LocalTransport: messages between the ranks of one machine, through the rings of a LocalSegment.
//
// A message is a header and its bytes, copied into the ring from the sender's memory and out of it into the
// receiver's while the sender goes on; messages may be longer than the ring. What the receiver has not asked
// for yet is kept in memory of its own, so that a ring never blocks.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tandem/dist/local_segment.h"
#include "tandem/dist/process_end.h"
#include "tandem/dist/transport_abi.h"

namespace tandem {

class LocalTransport {
 public:
  // Attaches to the segment as `rank`. Error when there is no such rank, or it is taken.
  LocalTransport(std::shared_ptr<LocalSegment> segment, int rank);
  ~LocalTransport();
  LocalTransport(const LocalTransport&) = delete;
  LocalTransport& operator=(const LocalTransport&) = delete;

  // A new LocalTransport as a table, whose close() deletes it.
  static TandemTransport open(std::shared_ptr<LocalSegment> segment, int rank);

  std::int64_t post(bool is_send, int peer, int tag, std::byte* data, std::int64_t bytes);
  TandemRequestState test(std::int64_t request);
  void cancel(std::int64_t request);
  TandemPeerState peer_state(int rank);
  const std::string& error() const { return error_; }

 private:
  struct Message {
    int peer = -1;  // −1: this entry is free
    int tag = 0;
    bool is_send = false;
    TandemRequestState state = TANDEM_REQUEST_PENDING;
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
  };
  // A message that came before it was asked for.
  struct Early {
    int tag = 0;
    std::vector<std::byte> bytes;
    bool complete = false;
    std::int64_t request = -1;  // asked for meanwhile
  };
  struct Peer {
    std::deque<std::int64_t> sends;      // requests, the first of which is on its way
    std::int64_t sent = -1;              // bytes of the first; −1: its header has not been written
    bool cut_off = false;                // a message to this rank was given up halfway
    std::vector<std::int64_t> receives;  // requests without a message
    std::deque<Early> early;
    bool arriving = false;                 // a message is on its way from this rank
    std::int64_t request = -1;             // what it is for; −1: nothing has asked for it
    bool is_early = false;                 // it goes to early.back()
    std::byte* to = nullptr;               // null: discarded
    std::int64_t bytes = 0, received = 0;  // of that message
    ProcessEnd process;
  };

  Message& message(std::int64_t request) { return messages_[static_cast<std::size_t>(request)]; }
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  bool take_early(std::int64_t request);
  void push(int to);
  void pull(int from);
  void begin_message(int from, int tag, std::int64_t bytes);
  void finish_message(Peer& from);
  void fail(std::int64_t request, std::int64_t bytes);

  std::shared_ptr<LocalSegment> segment_;
  int rank_;
  std::vector<Message> messages_;
  std::vector<std::int64_t> free_;
  std::vector<Peer> peers_;
  std::string error_;
};

}  // namespace tandem
