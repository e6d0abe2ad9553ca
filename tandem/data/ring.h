// The ring: blocks of finished images in shared memory, and everything workers and the trainer tell each
// other. A slot's state is one atomic word, which makes the protocol safe against a death between any two
// instructions:
//   free → posted     by the trainer, who wrote the job before
//   posted → claimed  by the worker whose compare-and-swap succeeds; others that heard of the job pass on
//   claimed → done    by that worker, after the images
//   claimed → posted  by the trainer, when that worker is dead: the job is done again, to the same bits
//   posted, done → free  by the trainer
// What travels through pipes is a slot's index, and only to wake somebody: a word too few or too many there
// loses and breaks nothing, the states decide.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tandem/augment/draw.h"
#include "tandem/augment/photo_recipe.h"
#include "tandem/data/batches.h"

namespace tandem {

// Positions first … first + count − 1 of an epoch.
struct BlockJob {
  std::int64_t epoch = 0, first = 0, count = 0;
};

enum class SlotState : std::uint32_t { free, posted, claimed, done };

// The word of a slot taken apart. The generation counts its jobs.
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

// What a worker says of itself, in a cache line of its own.
struct alignas(64) WorkerStatus {
  std::atomic<std::int32_t> ready{0};      // it has begun to wait for jobs
  std::atomic<std::int32_t> sample{-1};    // at work on it
  std::atomic<std::uint64_t> progress{0};  // moves with every sample
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::int32_t>::is_always_lock_free);

// What a ring is made for; a plain value, so that workers read it in the ring itself.
struct RingSetup {
  BatchPlan plan;
  ImageSize image;  // as it comes into the ring
  Recipe recipe;    // of images in an array
  bool photos = false;
  PhotoRecipe photo;               // of photographs, if it is those
  bool fail_on_bad_photo = false;  // otherwise another takes its place
  std::int32_t slots = 0, workers = 0;
  std::int32_t cpus = 0;          // workers keep to the last so many; 0: they run anywhere
  std::int64_t block_images = 0;  // the most in a slot
};

// A failure that ends the run: what a worker's exception said, and of which sample.
struct RingFailure {
  std::int32_t sample = -1;
  std::string text;
};

// A photograph a worker could not read, and why.
struct BadSample {
  std::int32_t sample = -1;
  std::string reason;
};

inline constexpr std::int32_t most_poisoned = 1024, most_bad = 1024;

// A view of the ring in memory someone else owns.
class Ring {
 public:
  static std::int64_t bytes_for(const RingSetup& setup);
  // Makes a ring of zeroed memory.
  static Ring make(std::span<std::byte> memory, const RingSetup& setup);
  // The ring another process made. Error when the memory holds something else.
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

  // The trainer's steps.
  void post(int slot, const BlockJob& job) const;
  bool withdraw(int slot) const;  // posted → free, unless a worker was faster
  void free(int slot) const;
  void take_back(int worker) const;  // what a dead worker had claimed is posted again

  // A worker's steps; false: another was faster.
  bool claim(int slot, int worker) const;
  bool finish(int slot, int worker) const;

  // Samples that are left out, in the order they were found. The trainer adds.
  std::span<const std::int32_t> poisoned() const;
  void add_poisoned(std::int32_t sample) const;

  // Photographs that could not be read, in the order they were found. Any worker adds; one that dies at it
  // leaves nothing. False: there is no room for more.
  bool add_bad(std::int32_t sample, const std::string& reason) const;
  std::vector<BadSample> bad() const;
  bool is_bad(std::int32_t sample) const;

  // The first failure stays.
  void report_failure(std::int32_t sample, const std::string& text) const;
  std::optional<RingFailure> failure() const;

  // Asks workers to leave after the sample they are at.
  void stop() const;
  bool stopped() const;

 private:
  struct Header;
  explicit Ring(std::byte* memory) : memory_(memory) {}
  Header& header() const;
  bool exchange(int slot, SlotWord from, SlotWord to) const;

  std::byte* memory_;
};

std::int64_t monotonic_ns();

}  // namespace tandem
