// Repairs the frame, which would refuse every change otherwise.
#include "fuzz/fuzz_checkpoint.h"
#include "fuzz/fuzz_mutator.h"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace tandem;
  const std::string input = mutated(data, size, max_size);
  if (seed % 8 == 0 || input.size() <= checkpoint_frame_size) return input.size();
  const std::string_view payload = std::string_view(input).substr(checkpoint_frame_size);
  return put_input(data, max_size, as_checkpoint(payload));
}
