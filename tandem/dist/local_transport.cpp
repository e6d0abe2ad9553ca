#include "tandem/dist/local_transport.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tandem/core/check.h"

namespace tandem {
namespace {

// Precedes every message in a ring. Messages are padded to its size, so that a header is never divided.
struct FrameHeader {
  std::int64_t tag;
  std::int64_t bytes;
};
constexpr std::int64_t header_bytes = sizeof(FrameHeader);
constexpr std::int64_t step_bytes = 32 << 10;  // made visible to the other side at once

std::int64_t padded(std::int64_t bytes) {
  return (bytes + header_bytes - 1) / header_bytes * header_bytes;
}

LocalTransport& self(void* state) {
  return *static_cast<LocalTransport*>(state);
}

}  // namespace

LocalTransport::LocalTransport(std::shared_ptr<LocalSegment> segment, int rank)
    : segment_(std::move(segment)), rank_(rank), peers_(static_cast<std::size_t>(segment_->ranks())) {
  check(rank >= 0 && rank < segment_->ranks(), "[group] expected a rank below {}, got {}", segment_->ranks(),
        rank);
  RankWords& words = segment_->rank(rank);
  RankState expected = RankState::absent;
  words.pid.store(::getpid());
  check(words.state.compare_exchange_strong(expected, RankState::attached), "[group] there are two ranks {}",
        rank);
}

LocalTransport::~LocalTransport() {
  segment_->rank(rank_).state.store(RankState::left);
  for (int to = 0; to < segment_->ranks(); ++to)
    if (to != rank_) segment_->raise_signal(to);
}

TandemTransport LocalTransport::open(std::shared_ptr<LocalSegment> segment, int rank) {
  const int size = segment->ranks();
  auto* transport = new LocalTransport(segment, rank);
  TandemTransport table{};
  table.version = TANDEM_TRANSPORT_VERSION;
  table.any_thread = 1;
  table.rank = rank;
  table.size = size;
  table.state = transport;
  table.post_send = [](void* state, std::int32_t to, std::int32_t tag, const void* data, std::int64_t bytes) {
    return self(state).post(true, to, tag, static_cast<std::byte*>(const_cast<void*>(data)), bytes);
  };
  table.post_receive = [](void* state, std::int32_t from, std::int32_t tag, void* data, std::int64_t bytes) {
    return self(state).post(false, from, tag, static_cast<std::byte*>(data), bytes);
  };
  table.test = [](void* state, std::int64_t request) -> std::int32_t { return self(state).test(request); };
  table.cancel = [](void* state, std::int64_t request) { self(state).cancel(request); };
  table.peer_state = [](void* state, std::int32_t of) -> std::int32_t { return self(state).peer_state(of); };
  table.error = [](void* state) { return self(state).error().c_str(); };
  table.close = [](void* state, std::int32_t) { delete &self(state); };
  table.signal = [](void* state) {
    const LocalTransport& local = self(state);
    return local.segment_->rank(local.rank_).signal.load();
  };
  table.wait = [](void* state, std::uint32_t seen, std::int64_t max_ns) {
    const LocalTransport& local = self(state);
    local.segment_->wait_signal(local.rank_, seen, max_ns);
  };
  table.wake = [](void* state) {
    const LocalTransport& local = self(state);
    local.segment_->raise_signal(local.rank_);
  };
  return table;
}

std::int64_t LocalTransport::post(bool is_send, int with, int tag, std::byte* data, std::int64_t bytes) {
  expect(with >= 0 && with < segment_->ranks() && with != rank_ && bytes >= 0);
  if (is_send && peer(with).cut_off) {
    error_ = "nothing can be sent after a message that was given up";
    return -1;
  }
  if (free_.empty()) {
    free_.push_back(static_cast<std::int64_t>(messages_.size()));
    messages_.emplace_back();
  }
  const std::int64_t request = free_.back();
  free_.pop_back();
  message(request) = {.peer = with, .tag = tag, .is_send = is_send, .data = data, .bytes = bytes};
  if (is_send) {
    peer(with).sends.push_back(request);
    push(with);
  } else if (!take_early(request)) {
    peer(with).receives.push_back(request);
  }
  return request;
}

// Finds the message for a new request among those that came early.
bool LocalTransport::take_early(std::int64_t request) {
  Message& wanted = message(request);
  std::deque<Early>& early = peer(wanted.peer).early;
  const auto found =
      std::ranges::find_if(early, [&](const Early& one) { return one.tag == wanted.tag && one.request < 0; });
  if (found == early.end()) return false;
  found->request = request;
  if (!found->complete) return true;  // finish_message() copies it
  const auto bytes = static_cast<std::int64_t>(found->bytes.size());
  if (bytes != wanted.bytes) {
    fail(request, bytes);
  } else {
    if (bytes > 0) std::memcpy(wanted.data, found->bytes.data(), found->bytes.size());
    wanted.state = TANDEM_REQUEST_DONE;
  }
  early.erase(found);
  return true;
}

void LocalTransport::fail(std::int64_t request, std::int64_t bytes) {
  Message& wanted = message(request);
  error_ =
      fmt::format("expected a message of {} bytes from rank {}, got {}", wanted.bytes, wanted.peer, bytes);
  wanted.state = TANDEM_REQUEST_FAILED;
}

TandemRequestState LocalTransport::test(std::int64_t request) {
  if (message(request).state == TANDEM_REQUEST_PENDING) {
    if (message(request).is_send)
      push(message(request).peer);
    else
      pull(message(request).peer);
  }
  const TandemRequestState state = message(request).state;
  if (state != TANDEM_REQUEST_PENDING) {
    message(request).peer = -1;
    free_.push_back(request);
  }
  return state;
}

void LocalTransport::cancel(std::int64_t request) {
  Message& given_up = message(request);
  Peer& other = peer(given_up.peer);
  if (given_up.is_send) {
    if (!other.sends.empty() && other.sends.front() == request && other.sent >= 0) other.cut_off = true;
    std::erase(other.sends, request);
    if (other.cut_off) other.sends.clear();
  } else {
    std::erase(other.receives, request);
    if (other.arriving && other.request == request) other.to = nullptr, other.request = -1;
    for (Early& early : other.early)
      if (early.request == request) early.request = -1;
  }
  given_up.peer = -1;
  free_.push_back(request);
}

// Copies what fits into the ring to `to`.
void LocalTransport::push(int to) {
  Peer& other = peer(to);
  if (other.sends.empty()) return;
  RingWords& ring = segment_->ring(rank_, to);
  std::byte* const bytes = segment_->ring_bytes(rank_, to);
  const std::int64_t capacity = segment_->ring_capacity();
  std::uint64_t head = ring.head.load(std::memory_order_relaxed);
  const std::uint64_t before = head;
  while (!other.sends.empty()) {
    const std::int64_t room =
        capacity - static_cast<std::int64_t>(head - ring.tail.load(std::memory_order_acquire));
    const auto at = static_cast<std::int64_t>(head % static_cast<std::uint64_t>(capacity));
    Message& current = message(other.sends.front());
    if (room < header_bytes) break;
    if (other.sent < 0) {
      const FrameHeader header{current.tag, current.bytes};
      std::memcpy(bytes + at, &header, sizeof(header));
      other.sent = 0;
      head += sizeof(header);
    } else {
      const std::int64_t count = std::min({step_bytes, room, capacity - at, current.bytes - other.sent});
      if (count > 0) std::memcpy(bytes + at, current.data + other.sent, static_cast<std::size_t>(count));
      other.sent += count;
      head += static_cast<std::uint64_t>(padded(count));  // only the last part is not a multiple
    }
    ring.head.store(head, std::memory_order_release);
    if (other.sent == current.bytes) {
      current.state = TANDEM_REQUEST_DONE;
      other.sends.pop_front();
      other.sent = -1;
    }
  }
  if (head != before) segment_->raise_signal(to);
}

// Copies what there is out of the ring from `from`.
void LocalTransport::pull(int from) {
  Peer& other = peer(from);
  RingWords& ring = segment_->ring(from, rank_);
  const std::byte* const bytes = segment_->ring_bytes(from, rank_);
  const std::int64_t capacity = segment_->ring_capacity();
  std::uint64_t tail = ring.tail.load(std::memory_order_relaxed);
  const std::uint64_t before = tail;
  while (true) {
    const auto there = static_cast<std::int64_t>(ring.head.load(std::memory_order_acquire) - tail);
    const auto at = static_cast<std::int64_t>(tail % static_cast<std::uint64_t>(capacity));
    if (there == 0) break;
    if (!other.arriving) {
      FrameHeader header;
      std::memcpy(&header, bytes + at, sizeof(header));
      begin_message(from, static_cast<int>(header.tag), header.bytes);
      tail += sizeof(header);
    } else {
      const std::int64_t count = std::min({step_bytes, there, capacity - at, other.bytes - other.received});
      if (other.to && count > 0)
        std::memcpy(other.to + other.received, bytes + at, static_cast<std::size_t>(count));
      other.received += count;
      tail += static_cast<std::uint64_t>(padded(count));
    }
    ring.tail.store(tail, std::memory_order_release);
    if (other.arriving && other.received == other.bytes) finish_message(other);
  }
  if (tail != before) segment_->raise_signal(from);
}

void LocalTransport::begin_message(int from, int tag, std::int64_t bytes) {
  Peer& other = peer(from);
  other.arriving = true;
  other.bytes = bytes;
  other.received = 0;
  const auto found =
      std::ranges::find_if(other.receives, [&](std::int64_t request) { return message(request).tag == tag; });
  if (found == other.receives.end()) {
    other.early.push_back({.tag = tag, .bytes = std::vector<std::byte>(static_cast<std::size_t>(bytes))});
    other.to = other.early.back().bytes.data();
    other.is_early = true;
    return;
  }
  other.request = *found;
  other.receives.erase(found);
  other.to = message(other.request).data;
  if (message(other.request).bytes != bytes) {
    fail(other.request, bytes);
    other.to = nullptr;
    other.request = -1;
  }
}

void LocalTransport::finish_message(Peer& from) {
  from.arriving = false;
  if (from.request >= 0) {
    message(from.request).state = TANDEM_REQUEST_DONE;
  } else if (from.is_early) {
    Early& early = from.early.back();
    early.complete = true;
    if (const std::int64_t request = std::exchange(early.request, -1); request >= 0) take_early(request);
  }
  from.request = -1;
  from.is_early = false;
}

TandemPeerState LocalTransport::peer_state(int of) {
  const RankWords& words = segment_->rank(of);
  if (words.state.load() == RankState::left) return TANDEM_PEER_LEFT;
  const pid_t pid = words.pid.load();  // of a rank that has not attached: 0, or what its launcher says
  if (pid == 0 || pid == ::getpid()) return TANDEM_PEER_RUNS;
  ProcessEnd& process = peer(of).process;
  if (process.pid() != pid) process = ProcessEnd(pid);
  if (!process.has_ended()) return TANDEM_PEER_RUNS;
  return words.state.load() == RankState::left ? TANDEM_PEER_LEFT : TANDEM_PEER_ENDED;
}

}  // namespace tandem
