#include "tandem/optim/fused_update.h"

#include <algorithm>
#include <cstring>

#include "tandem/core/on_dtype.h"
#include "tandem/core/parallel.h"
#include "tandem/core/simd.h"

namespace tandem::detail {
namespace {

using UpdateTypes = TypeList<float, double>;

template <class T>
Tensor upload_bytes(const std::vector<T>& values, Device device) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return Tensor::from(bytes, {static_cast<std::int64_t>(bytes.size())}, device);
}

template <class Rule, class T>
[[gnu::always_inline]] inline void update_range(Rule rule, const StepHyperparameters<T>& hyperparameters,
                                                std::int64_t count, T* __restrict w, const T* g,
                                                T* __restrict first, T* __restrict second) {
  T unused{};
  for (std::int64_t i = 0; i < count; ++i)
    rule(w[i], g[i], Rule::states > 0 ? first[i] : unused, Rule::states > 1 ? second[i] : unused,
         hyperparameters);
}

// Slot i has the hyperparameters number i · hyperparameter_step.
template <class Rule>
void update_all(Rule rule, DType dtype, const UpdateTable& table, std::span<const std::byte* const> gradients,
                const std::byte* hyperparameters, std::size_t hyperparameter_step) {
  on_dtype(UpdateTypes{}, dtype, "optimizer", [&]<class T>() {
    // Threads take whole chunks, numbered across all slots.
    parallel_for(table.first_chunk.back(), 8, [&](std::int64_t begin, std::int64_t end) {
      for (std::size_t i = 0; i < table.slots.size(); ++i) {
        const UpdateSlot& slot = table.slots[i];
        const std::int64_t from = std::max<std::int64_t>(begin - table.first_chunk[i], 0) * update_chunk;
        const std::int64_t to = std::min((end - table.first_chunk[i]) * update_chunk, slot.count);
        if (from >= to || !gradients[i]) continue;
        StepHyperparameters<T> values;
        std::memcpy(&values, hyperparameters + i * hyperparameter_step * sizeof(values), sizeof(values));
        const auto at = [from](std::byte* bytes) { return reinterpret_cast<T*>(bytes) + from; };
        T* const first = rule.states > 0 ? at(slot.states[0]) : nullptr;
        T* const second = rule.states > 1 ? at(slot.states[1]) : nullptr;
        with_simd([&]<std::size_t>() __attribute__((always_inline)) {
          update_range(rule, values, to - from, at(slot.weight),
                       reinterpret_cast<const T*>(gradients[i]) + from, first, second);
        });
      }
    });
  });
}

}  // namespace

UpdateTable make_update_table(std::vector<UpdateSlot> slots, Device device) {
  UpdateTable table{.slots = std::move(slots), .first_chunk = {0}, .device_slots = {}, .device_chunks = {}};
  std::vector<UpdateChunk> chunks;
  for (std::size_t slot = 0; slot < table.slots.size(); ++slot) {
    const std::int64_t pieces = (table.slots[slot].count + update_chunk - 1) / update_chunk;
    table.first_chunk.push_back(table.first_chunk.back() + pieces);
    if (device.is_cuda())
      for (std::int64_t i = 0; i < pieces; ++i)
        chunks.push_back({static_cast<std::int32_t>(slot), static_cast<std::int32_t>(i)});
  }
  if (device.is_cuda()) {
    table.device_slots = upload_bytes(table.slots, device);
    table.device_chunks = upload_bytes(chunks, device);
  }
  return table;
}

template <>
void write_hyperparameters_kernel<Backend::cpu>(const OptimizerOptions& options, DType dtype,
                                                double learning_rate, std::int64_t step,
                                                std::byte* hyperparameters, StreamView) {
  on_dtype(UpdateTypes{}, dtype, "optimizer", [&]<class T>() {
    const StepHyperparameters<T> values = step_hyperparameters<T>(options, learning_rate, step);
    std::memcpy(hyperparameters, &values, sizeof(values));
  });
}

template <>
void fused_update_kernel<Backend::cpu>(const OptimizerOptions& options, DType dtype, const UpdateTable& table,
                                       std::span<const std::byte* const> gradients,
                                       const std::byte* hyperparameters, int hyperparameter_step,
                                       StreamView) {
  on_update_rule(options, [&](auto rule) {
    update_all(rule, dtype, table, gradients, hyperparameters, static_cast<std::size_t>(hyperparameter_step));
  });
}

template <>
void fused_update_kernel<Backend::cpu>(OtherRule other, DType dtype, const UpdateTable& table,
                                       std::span<const std::byte* const> gradients,
                                       const std::byte* hyperparameters, StreamView) {
  on_other_rule(other, [&](auto rule, int step) {
    update_all(rule, dtype, table, gradients, hyperparameters, static_cast<std::size_t>(step));
  });
}

}  // namespace tandem::detail
