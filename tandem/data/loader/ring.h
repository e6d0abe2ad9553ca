// The ring: blocks of images in shared memory, and all state that workers and the trainer share. The state of
// a slot is one atomic word, so a worker may be killed between any two instructions:
//   free → posted        by the trainer, after it has written the job
//   posted → claimed     by the worker whose compare-and-swap succeeds; other workers ignore the slot
//   claimed → done       by that worker, after it has written the images
//   claimed → posted     by the trainer, when that worker is dead: the job is repeated and gives the same
//   bits posted, done → free  by the trainer
// Pipes carry slot indices only to wake the other side. A lost or repeated index is harmless: the states are
// the truth.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tandem/augment/transform.h"
#include "tandem/data/batches.h"
#include "tandem/data/loader/sample_store.h"
#include "tandem/data/skipped_sample.h"
#include "tandem/image/image.h"

namespace tandem {

// Local positions first … first + count − 1 of an epoch.
struct BlockJob {
  std::int64_t epoch = 0, first = 0, count = 0;
};

enum class SlotState : std::uint32_t { free, posted, claimed, done };

// The unpacked word of a slot. The generation counts its jobs.
struct SlotWord {
  SlotState state = SlotState::free;
  std::uint32_t worker = 0;
  std::uint32_t generation = 0;

  constexpr std::uint64_t packed() const {
    return std::uint64_t{generation} << 32 | std::uint64_t{worker} << 8 | static_cast<std::uint64_t>(state);
  }
  static constexpr SlotWord unpacked(std::uint64_t word) {
    return {static_cast<SlotState>(word & 0xff), static_cast<std::uint32_t>(word >> 8 & 0xffffff),
            static_cast<std::uint32_t>(word >> 32)};
  }
};

struct alignas(64) Slot {
  std::atomic<std::uint64_t> word{0};
  BlockJob job;
  std::int64_t claimed_ns = 0, done_ns = 0;  // CLOCK_MONOTONIC
};

// Written by a worker, in a cache line of its own.
struct alignas(64) WorkerStatus {
  std::atomic<std::int32_t> ready{0};      // 1 once the worker waits for jobs
  std::atomic<std::int32_t> sample{-1};    // the sample being read
  std::atomic<std::uint64_t> progress{0};  // counts samples
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::int32_t>::is_always_lock_free);

// The configuration of a ring. Trivially copyable, so that process workers read it from the ring itself.
struct RingSetup {
  BatchPlan plan;
  ImageSize image;  // size of the images in the ring
  Transform transform;
  detail::SampleFormat format = detail::SampleFormat::array;
  bool fail_on_bad = false;  // an unreadable sample; otherwise another one replaces it
  std::int32_t slots = 0;
  std::int32_t workers = 0;
  std::int32_t cpus = 0;          // workers are bound to the last `cpus` CPUs; 0: unbound
  std::int64_t block_images = 0;  // capacity of a slot
};

// A failure that ends the run: the message of a worker's exception, and the sample it was reading.
struct RingFailure {
  std::int32_t sample = -1;
  std::string text;
};

inline constexpr std::int32_t max_crashing = 1024, max_bad = 1024;

// A view of a ring in memory the caller owns.
class Ring {
 public:
  static std::int64_t bytes_for(const RingSetup& setup);
  // Initializes a ring in zeroed memory.
  static Ring make(std::span<std::byte> memory, const RingSetup& setup);
  // The ring that another process made. Error when the memory holds something else.
  static Ring attach(std::span<std::byte> memory);

  const RingSetup& setup() const;
  Slot& slot(int index) const;
  WorkerStatus& status(int worker) const;
  std::uint8_t* images(int slot) const;
  std::int32_t* samples(int slot) const;
  std::int32_t* labels(int slot) const;
  SlotWord word(int slot) const {
    return SlotWord::unpacked(this->slot(slot).word.load(std::memory_order_acquire));
  }

  // State changes by the trainer.
  void post(int slot, const BlockJob& job) const;
  bool withdraw(int slot) const;  // posted → free; false: a worker has claimed it
  void free(int slot) const;
  void reclaim(int worker) const;  // claimed → posted, for all claims of a dead worker

  // State changes by a worker; false: the slot is not in the required state.
  bool claim(int slot, int worker) const;
  bool finish(int slot, int worker) const;

  // Samples that crashed workers and are skipped, in the order they were found. Only the trainer adds.
  std::span<const std::int32_t> crashing() const;
  void add_crashing(std::int32_t sample) const;

  // Photographs that could not be read, in the order they were found. Any worker adds; a worker killed while
  // adding leaves no entry. False: the list is full.
  bool add_bad(const BadSample& bad) const;
  std::vector<BadSample> bad() const;
  bool is_bad(std::int32_t sample) const;

  // Only the first failure is kept.
  void report_failure(std::int32_t sample, const std::string& text) const;
  std::optional<RingFailure> failure() const;

  // Asks workers to return after the sample they are reading.
  void stop() const;
  bool stopped() const;

 private:
  struct Header;
  explicit Ring(std::byte* memory) : memory_(memory) {}
  Header& header() const;
  bool exchange(int slot, SlotWord from, SlotWord to) const;

  std::byte* memory_;
};

}  // namespace tandem
