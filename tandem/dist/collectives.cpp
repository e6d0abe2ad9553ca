#include "tandem/dist/collectives.h"

#include <algorithm>
#include <cstring>

#include "tandem/core/check.h"
#include "tandem/core/shard_tree.h"

namespace tandem {
namespace {

std::span<const std::byte> bytes_of(const float* values, FloatRange part) {
  return std::as_bytes(std::span(values + part.begin, static_cast<std::size_t>(part.count())));
}

std::span<std::byte> bytes_of(float* values, FloatRange part) {
  return std::as_writable_bytes(std::span(values + part.begin, static_cast<std::size_t>(part.count())));
}

}  // namespace

int message_tag(Channel channel, std::int64_t sequence) {
  constexpr int numbers = 2048;  // far more than operations under way
  return static_cast<int>(channel) * numbers + static_cast<int>(sequence % numbers);
}

AllGather::AllGather(Transport& transport, std::int64_t sequence, std::span<const std::byte> mine,
                     std::span<std::byte> all) {
  const int size = transport.size(), rank = transport.rank(), tag = message_tag(Channel::gather, sequence);
  expect(all.size() == mine.size() * static_cast<std::size_t>(size));
  const auto part = [&](int of) {
    return all.subspan(static_cast<std::size_t>(of) * mine.size(), mine.size());
  };
  for (int step = 1; step < size; ++step) {
    const int from = (rank + size - step) % size;
    receives_.add(transport.receive(from, tag, part(from)));
  }
  for (int step = 1; step < size; ++step) sends_.add(transport.send((rank + step) % size, tag, mine));
  if (!mine.empty() && part(rank).data() != mine.data())
    std::memcpy(part(rank).data(), mine.data(), mine.size());
}

bool AllGather::advance() {
  const bool sent = sends_.test();
  return receives_.test() && sent;
}

int AllGather::waits_for() const {
  return receives_.empty() ? sends_.peer() : receives_.peer();
}

Broadcast::Broadcast(Transport& transport, std::int64_t sequence, std::span<std::byte> bytes, int from)
    : transport_(&transport), bytes_(bytes), from_(from), tag_(message_tag(Channel::broadcast, sequence)) {
  const int size = transport.size();
  expect(from >= 0 && from < size);
  const int position = (transport.rank() + size - from) % size;  // in the tree; its root is 0
  if (position > 0) {
    const int parent = position & (position - 1);  // without the lowest bit
    receive_.add(transport.receive((parent + from) % size, tag_, bytes));
  }
}

bool Broadcast::advance() {
  if (!receive_.test()) return false;
  if (!received_) {
    received_ = true;
    const int size = transport_->size(), position = (transport_->rank() + size - from_) % size;
    int bit = 1;
    while (bit < size && (position & bit) == 0) bit *= 2;
    for (bit /= 2; bit > 0; bit /= 2)  // the child with most ranks below it first
      if (position + bit < size) sends_.add(transport_->send((position + bit + from_) % size, tag_, bytes_));
  }
  return sends_.test();
}

int Broadcast::waits_for() const {
  return receive_.empty() ? sends_.peer() : receive_.peer();
}

FloatRange part_of_rank(std::int64_t size, int ranks, int rank) {
  constexpr std::int64_t line = 16;
  const IndexRange lines = part_of((size + line - 1) / line, ranks, rank);
  return {std::min(size, lines.begin * line), std::min(size, lines.end * line)};
}

ScratchPool::Memory ScratchPool::take(std::int64_t floats) {
  if (const auto found = std::ranges::find_if(free_, [&](const Memory& m) { return m.floats >= floats; });
      found != free_.end()) {
    Memory memory = std::move(*found);
    free_.erase(found);
    return memory;
  }
  return {std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(floats)), floats};
}

void ScratchPool::give_back(Memory memory) {
  constexpr std::size_t max_kept = 4;  // more than sums under way
  if (free_.size() == max_kept) free_.erase(free_.begin());
  free_.push_back(std::move(memory));
}

ExchangeReduce::ExchangeReduce(Transport& transport, std::int64_t sequence, ReduceArrays arrays,
                               ScratchPool& scratch)
    : transport_(&transport),
      sequence_(sequence),
      arrays_(std::move(arrays)),
      whole_(arrays_.size * arrays_.tree->node_count() <= max_whole_floats),
      own_(part(transport.rank())),
      scratch_(&scratch) {
  const TreeSum& tree = *arrays_.tree;
  const int size = transport.size(), rank = transport.rank();
  const int tag = message_tag(Channel::partials, sequence);
  const std::int64_t count = own_.count();
  received_ = scratch.take(count * (tree.node_count() - tree.count(rank)));
  for (int step = 1; step < size && count > 0; ++step) {
    const int from = (rank + size - step) % size;
    // Arrays of our own are not received.
    const int first = tree.first(from) - (from > rank ? tree.count(rank) : 0);
    for (int node = first; node < first + tree.count(from); ++node)
      receives_.add(transport.receive(from, tag, bytes_of(received_.data.get() + node * count, {0, count})));
  }
  for (int step = 1; step < size; ++step) {
    const int to = (rank + step) % size;
    const FloatRange theirs = part(to);
    if (theirs.count() == 0) continue;
    for (const float* array : arrays_.mine) sends_.add(transport.send(to, tag, bytes_of(array, theirs)));
  }
}

ExchangeReduce::~ExchangeReduce() {
  // Messages are given up before the memory they go to is used again.
  receives_ = {};
  sends_ = {};
  scratch_->give_back(std::move(received_));
}

// What `rank` adds.
FloatRange ExchangeReduce::part(int rank) const {
  return whole_ ? FloatRange{0, arrays_.size} : part_of_rank(arrays_.size, transport_->size(), rank);
}

void ExchangeReduce::add_own_part() {
  const TreeSum& tree = *arrays_.tree;
  const int rank = transport_->rank();
  std::vector<const float*> all;
  all.reserve(static_cast<std::size_t>(tree.node_count()));
  const float* next = received_.data.get();
  for (int node = 0; node < tree.node_count(); ++node) {
    const int own = node - tree.first(rank);
    if (own >= 0 && own < tree.count(rank)) {
      all.push_back(arrays_.mine[static_cast<std::size_t>(own)] + own_.begin);
    } else {
      all.push_back(next);
      next += own_.count();
    }
  }
  tree.add(all, {arrays_.out + own_.begin, static_cast<std::size_t>(own_.count())});
}

void ExchangeReduce::exchange_sums() {
  const int size = transport_->size(), rank = transport_->rank();
  const int tag = message_tag(Channel::sums, sequence_);
  for (int step = 1; step < size; ++step) {
    const int from = (rank + size - step) % size, to = (rank + step) % size;
    const FloatRange theirs = part(from);
    if (theirs.count() > 0) receives_.add(transport_->receive(from, tag, bytes_of(arrays_.out, theirs)));
    if (own_.count() > 0)
      sends_.add(transport_->send(to, tag, bytes_of(static_cast<const float*>(arrays_.out), own_)));
  }
}

bool ExchangeReduce::advance() {
  // Sends first: `out` may be one of the arrays that are sent, and is written to afterwards.
  const bool sent = sends_.test();
  if (!receives_.test() || !sent) return false;
  if (!summed_) {
    add_own_part();
    if (!whole_) exchange_sums();
    summed_ = true;
    const bool sums_sent = sends_.test();
    return receives_.test() && sums_sent;
  }
  return true;
}

int ExchangeReduce::waits_for() const {
  return receives_.empty() ? sends_.peer() : receives_.peer();
}

}  // namespace tandem
