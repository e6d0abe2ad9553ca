// Launches of kernels over the chunks of an UpdateTable: one block per chunk, across all parameters. Gradient
// addresses are kernel arguments: they change from step to step, and a captured graph must keep the ones it
// was captured with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "tandem/optim/fused_update.h"

namespace tandem::detail {

inline constexpr int update_threads = 256;
// The elements of a slot that belong to a chunk.
struct ChunkRange {
  std::int64_t begin, end;
};
__device__ inline ChunkRange range_of(const UpdateChunk& chunk, std::int64_t count) {
  const std::int64_t begin = chunk.index * update_chunk, end = begin + update_chunk;
  return {begin, end < count ? end : count};
}

inline constexpr int max_update_slots = 256;  // per launch

struct GradientAddresses {
  const std::byte* of_slot[max_update_slots];
};

struct UpdateLaunch {
  unsigned blocks;            // one per chunk
  const UpdateSlot* slots;    // all of them, in device memory
  const UpdateChunk* chunks;  // of this launch, in device memory
  std::int64_t first_chunk;   // of all chunks of the table
  int first_slot;             // whose address is the first of `gradients`
  GradientAddresses gradients;
};

// Calls f(UpdateLaunch) for as many slots at a time as one launch holds.
template <class F>
void for_each_launch(const UpdateTable& table, std::span<const std::byte* const> gradients, F&& f) {
  const auto slot_count = static_cast<int>(table.slots.size());
  for (int first = 0; first < slot_count; first += max_update_slots) {
    const int end = std::min(first + max_update_slots, slot_count);
    const std::int64_t first_chunk = table.first_chunk[first], blocks = table.first_chunk[end] - first_chunk;
    if (blocks == 0) continue;
    UpdateLaunch launch{
        .blocks = static_cast<unsigned>(blocks),
        .slots = reinterpret_cast<const UpdateSlot*>(table.device_slots.bytes()),
        .chunks = reinterpret_cast<const UpdateChunk*>(table.device_chunks.bytes()) + first_chunk,
        .first_chunk = first_chunk,
        .first_slot = first,
        .gradients = {}};
    std::copy(gradients.begin() + first, gradients.begin() + end, launch.gradients.of_slot);
    f(launch);
  }
}

}  // namespace tandem::detail
