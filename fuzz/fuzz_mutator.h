// What mutators have in common. A mutator changes an input and then repairs what would end its parsing
// early: checksums and lengths. The fuzzer, or replay.cpp, calls it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed);

namespace tandem {

inline void put_little_endian(std::uint8_t* at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

inline std::uint64_t little_endian(const std::uint8_t* at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | at[i];
  return value;
}

// The input after the fuzzer's own changes, for a repair that replaces it.
inline std::string mutated(std::uint8_t* data, std::size_t size, std::size_t max_size) {
  return {reinterpret_cast<const char*>(data), LLVMFuzzerMutate(data, size, max_size)};
}

// Copies the repaired input back, shortened to max_size.
inline std::size_t put_input(std::uint8_t* data, std::size_t max_size, const std::string& input) {
  return static_cast<std::size_t>(std::copy_n(input.begin(), std::min(input.size(), max_size), data) - data);
}

}  // namespace tandem
