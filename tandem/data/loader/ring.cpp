// The memory layout of the ring and its state changes.
#include "tandem/data/loader/ring.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

#include "tandem/core/check.h"
#include "tandem/core/clock.h"

namespace tandem {

struct Ring::Header {
  std::uint64_t magic;
  RingSetup setup;
  std::atomic<std::int32_t> stop;
  std::atomic<std::int32_t> failure_state;  // 0: none, 1: being written, 2: complete
  std::int32_t failure_sample;
  char failure_text[500];
  std::atomic<std::int32_t> crashing_count;
  std::int32_t crashing[max_crashing];
  std::atomic<std::int32_t> bad_count;  // entries that are written or being written
  struct Bad {
    std::atomic<std::int32_t> written;
    std::int32_t sample;
    char reason[247];
    SkipKind kind;
  } bad[max_bad];
};

namespace {

static_assert(std::is_trivially_copyable_v<RingSetup>);

// A worker of another build must not attach: the size of RingSetup is part of the magic number.
constexpr std::uint64_t magic_number = 0x54616E64656D0000ULL + sizeof(RingSetup);
constexpr std::int64_t page = 4096;
constexpr std::int64_t very_large = std::int64_t{1} << 50;

constexpr std::int64_t rounded(std::int64_t bytes, std::int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Byte offsets. The pixels of a slot begin at a page.
struct Layout {
  std::int64_t slots, statuses, blocks;  // from the beginning of the memory
  std::int64_t labels, pixels;           // from the beginning of a block
  std::int64_t block;                    // size of a block

  Layout(const RingSetup& setup, std::int64_t header_bytes) {
    slots = rounded(header_bytes, 64);
    statuses = slots + setup.slots * static_cast<std::int64_t>(sizeof(Slot));
    blocks = rounded(statuses + setup.workers * static_cast<std::int64_t>(sizeof(WorkerStatus)), page);
    labels = rounded(4 * setup.block_images, 64);
    pixels = rounded(2 * labels, page);
    block = pixels + rounded(setup.block_images * setup.image.bytes(), page);
  }
};

}  // namespace

std::int64_t Ring::bytes_for(const RingSetup& setup) {
  if (setup.image.bytes() > very_large / setup.block_images) return very_large;
  const Layout layout(setup, sizeof(Header));
  if (layout.block > very_large / setup.slots) return very_large;
  return layout.blocks + setup.slots * layout.block;
}

Ring Ring::make(std::span<std::byte> memory, const RingSetup& setup) {
  expect(static_cast<std::int64_t>(memory.size()) >= bytes_for(setup));
  const Ring ring(memory.data());
  Header* header = new (memory.data()) Header{};
  header->setup = setup;
  header->magic = magic_number;
  const Layout layout(setup, sizeof(Header));
  for (int i = 0; i < setup.slots; ++i)
    new (memory.data() + layout.slots + i * static_cast<std::int64_t>(sizeof(Slot))) Slot{};
  for (int i = 0; i < setup.workers; ++i)
    new (memory.data() + layout.statuses + i * static_cast<std::int64_t>(sizeof(WorkerStatus)))
        WorkerStatus{};
  return ring;
}

Ring Ring::attach(std::span<std::byte> memory) {
  const Ring ring(memory.data());
  check(memory.size() >= sizeof(Header) && ring.header().magic == magic_number &&
            static_cast<std::int64_t>(memory.size()) >= bytes_for(ring.setup()),
        "[worker] expected a ring of this version of tandem, got {} bytes of something else", memory.size());
  return ring;
}

Ring::Header& Ring::header() const {
  return *std::launder(reinterpret_cast<Header*>(memory_));
}

const RingSetup& Ring::setup() const {
  return header().setup;
}

Slot& Ring::slot(int index) const {
  const Layout layout(setup(), sizeof(Header));
  return std::launder(reinterpret_cast<Slot*>(memory_ + layout.slots))[index];
}

WorkerStatus& Ring::status(int worker) const {
  const Layout layout(setup(), sizeof(Header));
  return std::launder(reinterpret_cast<WorkerStatus*>(memory_ + layout.statuses))[worker];
}

std::int32_t* Ring::samples(int slot) const {
  const Layout layout(setup(), sizeof(Header));
  return reinterpret_cast<std::int32_t*>(memory_ + layout.blocks + slot * layout.block);
}

std::int32_t* Ring::labels(int slot) const {
  const Layout layout(setup(), sizeof(Header));
  return reinterpret_cast<std::int32_t*>(memory_ + layout.blocks + slot * layout.block + layout.labels);
}

std::uint8_t* Ring::images(int slot) const {
  const Layout layout(setup(), sizeof(Header));
  return reinterpret_cast<std::uint8_t*>(memory_ + layout.blocks + slot * layout.block + layout.pixels);
}

bool Ring::exchange(int index, SlotWord from, SlotWord to) const {
  std::uint64_t expected = from.packed();
  return slot(index).word.compare_exchange_strong(expected, to.packed(), std::memory_order_acq_rel);
}

void Ring::post(int index, const BlockJob& job) const {
  const SlotWord before = word(index);
  expect(before.state == SlotState::free && job.count <= setup().block_images);
  slot(index).job = job;
  expect(exchange(index, before, {SlotState::posted, 0, before.generation + 1}));
}

bool Ring::withdraw(int index) const {
  const SlotWord before = word(index);
  return before.state == SlotState::posted &&
         exchange(index, before, {SlotState::free, 0, before.generation});
}

void Ring::free(int index) const {
  const SlotWord before = word(index);
  expect(before.state == SlotState::done);
  expect(exchange(index, before, {SlotState::free, 0, before.generation}));
}

void Ring::reclaim(int worker) const {
  for (int i = 0; i < setup().slots; ++i) {
    const SlotWord before = word(i);
    if (before.state == SlotState::claimed && before.worker == static_cast<std::uint32_t>(worker))
      expect(exchange(i, before, {SlotState::posted, 0, before.generation}));
  }
}

bool Ring::claim(int index, int worker) const {
  const SlotWord before = word(index);
  if (before.state != SlotState::posted) return false;
  if (!exchange(index, before, {SlotState::claimed, static_cast<std::uint32_t>(worker), before.generation}))
    return false;
  slot(index).claimed_ns = monotonic_ns();
  return true;
}

bool Ring::finish(int index, int worker) const {
  const SlotWord before = word(index);
  if (before.state != SlotState::claimed || before.worker != static_cast<std::uint32_t>(worker)) return false;
  slot(index).done_ns = monotonic_ns();
  return exchange(index, before, {SlotState::done, before.worker, before.generation});
}

std::span<const std::int32_t> Ring::crashing() const {
  const auto count = header().crashing_count.load(std::memory_order_acquire);
  return {header().crashing, static_cast<std::size_t>(count)};
}

void Ring::add_crashing(std::int32_t sample) const {
  const auto count = header().crashing_count.load(std::memory_order_relaxed);
  expect(count < max_crashing);
  header().crashing[count] = sample;
  header().crashing_count.store(count + 1, std::memory_order_release);
}

bool Ring::is_bad(std::int32_t sample) const {
  const auto count = std::min(header().bad_count.load(std::memory_order_acquire), max_bad);
  for (std::int32_t i = 0; i < count; ++i)
    if (header().bad[i].written.load(std::memory_order_acquire) != 0 && header().bad[i].sample == sample)
      return true;
  return false;
}

bool Ring::add_bad(const BadSample& bad) const {
  if (is_bad(bad.sample)) return true;
  std::int32_t index = header().bad_count.load();
  do {
    if (index >= max_bad) return false;
  } while (!header().bad_count.compare_exchange_weak(index, index + 1));
  Header::Bad& entry = header().bad[index];
  const std::size_t bytes = std::min(bad.reason.size(), sizeof(entry.reason) - 1);
  std::memcpy(entry.reason, bad.reason.data(), bytes);
  entry.reason[bytes] = 0;
  entry.sample = bad.sample;
  entry.kind = bad.kind;
  entry.written.store(1, std::memory_order_release);
  return true;
}

// Two workers that read the same photograph at the same time may both have added it.
std::vector<BadSample> Ring::bad() const {
  std::vector<BadSample> all;
  const auto count = std::min(header().bad_count.load(std::memory_order_acquire), max_bad);
  for (std::int32_t i = 0; i < count; ++i) {
    const Header::Bad& entry = header().bad[i];
    if (entry.written.load(std::memory_order_acquire) == 0) continue;
    const bool known =
        std::any_of(all.begin(), all.end(), [&](const BadSample& one) { return one.sample == entry.sample; });
    if (!known) all.push_back({entry.sample, entry.reason, entry.kind});
  }
  return all;
}

void Ring::report_failure(std::int32_t sample, const std::string& text) const {
  std::int32_t none = 0;
  if (!header().failure_state.compare_exchange_strong(none, 1)) return;
  const std::size_t bytes = std::min(text.size(), sizeof(Header::failure_text) - 1);
  std::memcpy(header().failure_text, text.data(), bytes);
  header().failure_text[bytes] = 0;
  header().failure_sample = sample;
  header().failure_state.store(2, std::memory_order_release);
}

std::optional<RingFailure> Ring::failure() const {
  if (header().failure_state.load(std::memory_order_acquire) != 2) return std::nullopt;
  return RingFailure{header().failure_sample, header().failure_text};
}

void Ring::stop() const {
  header().stop.store(1, std::memory_order_release);
}

bool Ring::stopped() const {
  return header().stop.load(std::memory_order_relaxed) != 0;
}

}  // namespace tandem
