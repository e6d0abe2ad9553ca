#include "tandem/dist/transport.h"

#include <utility>

#include "tandem/core/check.h"

namespace tandem {

Request::~Request() {
  if (number_ >= 0) table_->cancel(table_->state, number_);
}

Request::Request(Request&& other) noexcept
    : table_(other.table_), number_(std::exchange(other.number_, -1)), peer_(other.peer_) {}

Request& Request::operator=(Request&& other) noexcept {
  std::swap(table_, other.table_);
  std::swap(number_, other.number_);
  std::swap(peer_, other.peer_);
  return *this;
}

bool Request::test() {
  if (number_ < 0) return true;
  const std::int32_t state = table_->test(table_->state, number_);
  if (state == TANDEM_REQUEST_PENDING) return false;
  number_ = -1;
  check(state == TANDEM_REQUEST_DONE, "[transport] {}", table_->error(table_->state));
  return true;
}

Transport::Transport(const TandemTransport& table) : table_(table) {
  check(table.version == TANDEM_TRANSPORT_VERSION, "[transport] expected interface version {}, got {}",
        static_cast<int>(TANDEM_TRANSPORT_VERSION), table.version);
  check(table.size >= 1 && table.rank >= 0 && table.rank < table.size,
        "[transport] expected a rank below the number of ranks, got rank {} of {}", table.rank, table.size);
}

Transport::~Transport() {
  table_.close(table_.state, failed_ ? 1 : 0);
}

Request Transport::request(std::int64_t number, int peer) {
  check(number >= 0, "[transport] {}", table_.error(table_.state));
  return {table_, number, peer};
}

Request Transport::send(int to, int tag, std::span<const std::byte> bytes) {
  return request(
      table_.post_send(table_.state, to, tag, bytes.data(), static_cast<std::int64_t>(bytes.size())), to);
}

Request Transport::receive(int from, int tag, std::span<std::byte> bytes) {
  return request(
      table_.post_receive(table_.state, from, tag, bytes.data(), static_cast<std::int64_t>(bytes.size())),
      from);
}

TandemPeerState Transport::peer_state(int rank) {
  return static_cast<TandemPeerState>(table_.peer_state(table_.state, rank));
}

}  // namespace tandem
