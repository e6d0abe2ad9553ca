// The layout of the segment, and waiting by futex.
#include "tandem/dist/local_segment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

#include "tandem/core/check.h"

namespace tandem {

// Offsets and sizes in bytes, written once by the process that makes the segment.
struct LocalSegment::Header {
  std::uint64_t magic;
  std::int64_t ranks;
  std::int64_t ring_bytes;  // without its words
  std::int64_t slot_bytes, result_bytes;
  std::int64_t words, rings, areas;  // where these begin
  std::int64_t total;
};

namespace {

constexpr std::uint64_t magic = 0x316b6e61726d6474;  // "tdmrank1": changes with the layout
constexpr std::int64_t line = 64;
constexpr std::int64_t page = 4096;

std::int64_t round_up(std::int64_t value, std::int64_t to) {
  return (value + to - 1) / to * to;
}

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
  return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

}  // namespace

LocalSegment::LocalSegment(int ranks) {
  check(ranks >= 1 && ranks <= max_ranks, "[group] expected 1 to {} ranks on one machine, got {}", max_ranks,
        ranks);
  Header header{};
  header.magic = magic;
  header.ranks = ranks;
  // Small with many ranks: a ring for each pair.
  header.ring_bytes = ranks <= 8 ? 256 << 10 : ranks <= 32 ? 64 << 10 : 16 << 10;
  header.slot_bytes = 256 << 10;
  header.result_bytes = round_up(header.slot_bytes / ranks + line, page);
  header.words = round_up(sizeof(Header), page);
  header.rings = round_up(header.words + ranks * std::int64_t{sizeof(RankWords)}, page);
  header.areas = round_up(
      header.rings + std::int64_t{ranks} * ranks * (std::int64_t{sizeof(RingWords)} + header.ring_bytes),
      page);
  header.total = header.areas + header.ranks * slots * (header.slot_bytes + header.result_bytes);
  memory_ = SharedMemory(header.total, "the memory between local ranks", "use fewer ranks");
  *reinterpret_cast<Header*>(memory_.data()) = header;
}

LocalSegment::LocalSegment(Descriptor file) {
  ::fcntl(file.get(), F_SETFD, FD_CLOEXEC);  // inherited by this rank, not by what it starts
  memory_ = SharedMemory(std::move(file), SharedMemory::Access::read_write);
  check(memory_.size() >= sizeof(Header) && header().magic == magic &&
            header().total == static_cast<std::int64_t>(memory_.size()),
        "[group] expected the shared memory of ranks of this version in descriptor {}, got something else",
        memory_.fd());
}

const LocalSegment::Header& LocalSegment::header() const {
  return *reinterpret_cast<const Header*>(memory_.data());
}

int LocalSegment::ranks() const {
  return static_cast<int>(header().ranks);
}

void LocalSegment::set_process(int of, std::int64_t pid) const {
  std::int32_t unknown = 0;  // a rank that has attached knows its process better
  rank(of).pid.compare_exchange_strong(unknown, static_cast<std::int32_t>(pid));
}

RankWords& LocalSegment::rank(int rank) const {
  return reinterpret_cast<RankWords*>(memory_.data() + header().words)[rank];
}

RingWords& LocalSegment::ring(int from, int to) const {
  const std::int64_t index = from * header().ranks + to;
  return *reinterpret_cast<RingWords*>(memory_.data() + header().rings +
                                       index * (std::int64_t{sizeof(RingWords)} + header().ring_bytes));
}

std::byte* LocalSegment::ring_bytes(int from, int to) const {
  return reinterpret_cast<std::byte*>(&ring(from, to) + 1);
}

std::int64_t LocalSegment::ring_capacity() const {
  return header().ring_bytes;
}

float* LocalSegment::slot(int rank, std::int64_t piece) const {
  const std::int64_t index = std::int64_t{rank} * slots + piece % slots;
  return reinterpret_cast<float*>(memory_.data() + header().areas + index * header().slot_bytes);
}

float* LocalSegment::result(int rank, std::int64_t piece) const {
  const std::int64_t index = std::int64_t{rank} * slots + piece % slots;
  return reinterpret_cast<float*>(memory_.data() + header().areas +
                                  header().ranks * slots * header().slot_bytes +
                                  index * header().result_bytes);
}

std::int64_t LocalSegment::slot_floats() const {
  return header().slot_bytes / std::int64_t{sizeof(float)};
}

void LocalSegment::raise_signal(int to) const {
  RankWords& words = rank(to);
  words.signal.fetch_add(1);  // before the sleepers are read: one that starts to wait sees the new value
  if (words.sleepers.load() > 0) futex(words.signal, FUTEX_WAKE, INT_MAX, nullptr);
}

void LocalSegment::wait_signal(int of, std::uint32_t seen, std::int64_t max_ns) const {
  RankWords& words = rank(of);
  const timespec timeout{max_ns / 1'000'000'000, static_cast<long>(max_ns % 1'000'000'000)};
  words.sleepers.fetch_add(1);
  if (words.signal.load() == seen) futex(words.signal, FUTEX_WAIT, seen, &timeout);
  words.sleepers.fetch_sub(1);
}

}  // namespace tandem
