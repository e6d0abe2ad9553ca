// Writes the checksum into every block that can be a header, and for some inputs a size that fits.
#include <cstdio>

#include "fuzz/fuzz_mutator.h"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace tandem;
  size = LLVMFuzzerMutate(data, size, max_size);
  constexpr std::size_t block = 512, size_at = 124, sum_at = 148;
  if (seed % 8 == 0) return size;
  for (std::size_t at = 0; at + block <= size; at += block) {
    char digits[12];
    if (seed % 4 == 1) {
      std::snprintf(digits, sizeof digits, "%011zo", seed / 4 % (size - at - block + 1));
      std::copy_n(digits, sizeof digits, data + at + size_at);
    }
    std::fill_n(data + at + sum_at, 8, ' ');
    unsigned sum = 0;
    for (std::size_t i = 0; i < block; ++i) sum += data[at + i];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    std::copy_n(digits, 7, data + at + sum_at);
  }
  return size;
}
