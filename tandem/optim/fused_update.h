// One pass over all weights of a network: the update of every parameter in one parallel loop, or one kernel.
// What changes from step to step lies in memory of the device, so that a captured update can be replayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tandem/device/stream.h"
#include "tandem/optim/update_rule.h"
#include "tandem/tensor/tensor.h"

namespace tandem {

// Where one parameter and what is kept for it lie; unused states are null.
struct UpdateSlot {
  std::byte* weight;
  std::byte* states[2];
  std::int64_t count;
};

// A piece of a slot that one block of threads works on.
struct UpdateChunk {
  std::int32_t slot, index;
};
inline constexpr std::int64_t update_chunk = 1024;  // elements

struct UpdateTable {
  std::vector<UpdateSlot> slots;
  std::vector<std::int64_t> first_chunk;  // of each slot, and the end
  Tensor device_slots, device_chunks;     // the same for kernels, as bytes; CUDA only
};

UpdateTable make_update_table(std::vector<UpdateSlot> slots, Device device);

inline constexpr std::int64_t update_number_count = sizeof(UpdateNumbers<float>) / sizeof(float);

// Puts the UpdateNumbers of a step (counted from 1) into `numbers`, update_number_count of the dtype.
template <Backend B>
void write_numbers_kernel(const UpdateOptions& options, DType dtype, double learning_rate, std::int64_t step,
                          std::byte* numbers, StreamView stream);

// `gradients` has a dense gradient for each slot, or null: then the slot is left alone. f32 and f64.
template <Backend B>
void fused_update_kernel(const UpdateOptions& options, DType dtype, const UpdateTable& table,
                         std::span<const std::byte* const> gradients, const std::byte* numbers,
                         StreamView stream);

}  // namespace tandem
