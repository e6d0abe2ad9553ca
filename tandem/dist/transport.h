// Transport and Request: the owners of what a table of functions (transport_abi.h) hands out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tandem/dist/transport_abi.h"

namespace tandem {

// A message on its way; given up when it is destroyed before it is done.
class Request {
 public:
  Request() = default;  // done
  Request(const TandemTransport& table, std::int64_t number, int peer)
      : table_(&table), number_(number), peer_(peer) {}
  ~Request();
  Request(Request&& other) noexcept;
  Request& operator=(Request&& other) noexcept;

  // Moves data; true once the message is complete. Error when it failed.
  bool test();
  bool done() const { return number_ < 0; }
  int peer() const { return peer_; }

 private:
  const TandemTransport* table_ = nullptr;
  std::int64_t number_ = -1;
  int peer_ = -1;
};

class Transport {
 public:
  // Takes the table over: it is closed with this object. Error for another version or a rank that cannot be.
  explicit Transport(const TandemTransport& table);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  int rank() const { return table_.rank; }
  int size() const { return table_.size; }
  bool any_thread() const { return table_.any_thread != 0; }
  bool joint_close() const { return table_.joint_close != 0; }
  // The ranks do not leave together: this one does not wait for the others when it is destroyed.
  void set_failed() { failed_ = true; }

  // The bytes must stay where they are until the request is done or destroyed.
  Request send(int to, int tag, std::span<const std::byte> bytes);
  Request receive(int from, int tag, std::span<std::byte> bytes);
  TandemPeerState peer_state(int rank);

  bool can_wait() const { return table_.wait != nullptr; }
  std::uint32_t signal() const { return can_wait() ? table_.signal(table_.state) : 0; }
  void wait(std::uint32_t seen, std::int64_t max_ns) const { table_.wait(table_.state, seen, max_ns); }
  void wake() const {
    if (can_wait()) table_.wake(table_.state);
  }

 private:
  Request request(std::int64_t number, int peer);

  TandemTransport table_;
  bool failed_ = false;
};

}  // namespace tandem
