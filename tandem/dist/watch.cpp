#include "tandem/dist/watch.h"

#include <algorithm>
#include <cstring>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/dist/collectives.h"

namespace tandem {
namespace {

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

Watch::Watch(Transport& transport)
    : transport_(&transport), peers_(static_cast<std::size_t>(transport.size())), last_ns_(monotonic_ns()) {
  for (int rank = 0; rank < transport.size(); ++rank)
    if (rank != transport.rank())
      peer(rank).receive =
          transport.receive(rank, message_tag(Channel::control, 0), bytes_of(peer(rank).notice));
}

void Watch::begin(std::vector<Place> places, double limit_s, const std::vector<int>& visible) {
  places_ = std::move(places);
  if (transport_->size() == 1) return;
  for (const int rank : visible)
    peer(rank).process = ProcessEnd(static_cast<pid_t>(places_[static_cast<std::size_t>(rank)].pid));
  limit_ns_ = static_cast<std::int64_t>(limit_s * 1e9);
  interval_ns_ = std::clamp<std::int64_t>(limit_ns_ / 40, 1'000'000, 50'000'000);
  last_ns_ = monotonic_ns();
  const int previous = (transport_->rank() + transport_->size() - 1) % transport_->size();
  receive_ = transport_->receive(previous, message_tag(Channel::heartbeat, 0), bytes_of(beat_received_));
}

std::optional<GroupFailure> Watch::advance() {
  const std::int64_t now = monotonic_ns(), passed = now - last_ns_;
  const bool tick = passed >= interval_ns_ / 4;
  std::optional<GroupFailure> ended;
  // Ends are looked for before notices are read, and count after them: what an ended rank sent is there.
  if (tick) ended = find_ended(now);
  for (int rank = 0; rank < transport_->size(); ++rank)
    if (rank != transport_->rank() && !peer(rank).receive.done())
      if (auto failure = read_notice(rank)) return failure;
  if (ended) return ended;
  if (!tick) return std::nullopt;
  last_ns_ = now;
  return limit_ns_ > 0 ? count_heartbeats(passed) : std::nullopt;
}

std::optional<GroupFailure> Watch::read_notice(int from) {
  Peer& sender = peer(from);
  if (!sender.receive.test()) return std::nullopt;
  const Notice& notice = sender.notice;
  if (notice.kind == Kind::leave) {
    sender.left = true;
    return std::nullopt;
  }
  const auto length =
      std::clamp<std::size_t>(static_cast<std::size_t>(notice.length), 0, sizeof(notice.text));
  return GroupFailure{
      .text = std::string(notice.text, length), .lost_rank = notice.kind == Kind::lost, .is_known = true};
}

std::optional<GroupFailure> Watch::find_ended(std::int64_t now) {
  for (int rank = 0; rank < transport_->size(); ++rank)
    if (rank != transport_->rank() && has_ended(rank, now))
      return GroupFailure{
          .text =
              describe(rank) + (places_.empty() ? " has ended before all ranks had started" : " has ended"),
          .lost_rank = true};
  return std::nullopt;
}

bool Watch::has_ended(int rank, std::int64_t now) {
  if (transport_->peer_state(rank) == TANDEM_PEER_ENDED) return true;
  Peer& other = peer(rank);
  if (other.left || !other.process.has_ended()) return false;
  // Unlike the rings of local ranks, a transport that does not know of ends may still have its last words.
  constexpr std::int64_t last_words_ns = 200'000'000;
  if (other.ended_ns == 0) other.ended_ns = now;
  return now - other.ended_ns >= last_words_ns;
}

int Watch::first_here() const {
  for (int rank = 0; rank < transport_->size(); ++rank)
    if (rank != transport_->rank() && !has_left(rank)) return rank;
  return -1;
}

std::optional<GroupFailure> Watch::count_heartbeats(std::int64_t passed_ns) {
  // A process that was stopped itself must not count that time: all ranks of a suspended job would blame
  // each other.
  const std::int64_t counted = std::min(passed_ns, 2 * interval_ns_);
  until_beat_ns_ -= counted;
  const int size = transport_->size(), next = (transport_->rank() + 1) % size,
            previous = (transport_->rank() + size - 1) % size;
  const int tag = message_tag(Channel::heartbeat, 0);
  if (send_.test() && until_beat_ns_ <= 0 && !has_left(next)) {
    ++beat_sent_;
    send_ = transport_->send(next, tag, bytes_of(beat_sent_));
    until_beat_ns_ = std::min<std::int64_t>(limit_ns_ / 8, 1'000'000'000);
  }
  silent_ns_ += counted;
  if (receive_.test()) {
    silent_ns_ = 0;
    receive_ = transport_->receive(previous, tag, bytes_of(beat_received_));
  }
  if (silent_ns_ < limit_ns_ || has_left(previous)) return std::nullopt;
  return GroupFailure{.text = fmt::format("{} has not answered for {:g} s", describe(previous),
                                          static_cast<double>(limit_ns_) / 1e9),
                      .lost_rank = true};
}

void Watch::send_notice(Kind kind, const std::string& text) {
  outgoing_.kind = kind;
  const std::size_t length = std::min(text.size(), sizeof(outgoing_.text));
  outgoing_.length = static_cast<std::int32_t>(length);
  std::memcpy(outgoing_.text, text.data(), length);
  for (int rank = 0; rank < transport_->size(); ++rank)
    if (rank != transport_->rank())
      notices_.add(transport_->send(rank, message_tag(Channel::control, 0), bytes_of(outgoing_)));
}

void Watch::send_failure(const GroupFailure& failure) {
  send_notice(failure.lost_rank ? Kind::lost : Kind::failure, failure.text);
}

void Watch::send_leave() {
  send_notice(Kind::leave, "");
}

bool Watch::sent() {
  return notices_.test();
}

std::string Watch::describe(int rank) const {
  if (places_.empty()) return fmt::format("rank {}", rank);
  const Place& place = places_[static_cast<std::size_t>(rank)];
  return fmt::format("rank {} (host {}, process {})", rank, place.host, place.pid);
}

}  // namespace tandem
