// Counts the work of a call, without a clock: the basic blocks that the parsers run (they are compiled a
// second time with -fsanitize-coverage=trace-pc for this program), the bytes that libraries move, compare and
// search in memory for them, and the bytes that they allocate.
#pragma once

#include <cstdint>

namespace tandem {

struct Work {
  std::uint64_t steps = 0;      // basic blocks, and bytes of memcpy and the like / 16
  std::uint64_t allocated = 0;  // bytes in total, freed or not
};

// The work since the start of the program, by all threads.
Work work_so_far();

}  // namespace tandem
