// Checkpoints: read only with the right length and digest, and then as the safetensors file inside.
#include "fuzz/fuzz_checkpoint.h"
#include "fuzz/fuzz_file.h"
#include "fuzz/fuzz_tensors.h"
#include "tandem/files/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const std::string_view input = text_of(data, size);
  const auto file = result_or_none([&] { return parse_checkpoint(input, "file"); });
  if (size > checkpoint_frame_size) {
    const std::string_view payload = input.substr(checkpoint_frame_size);
    const auto inside = result_or_none([&] { return parse_safetensors(payload, "file"); });
    require(file.has_value() == (inside && input == as_checkpoint(payload)));
    if (file) require_same(*file, *inside);
  }
  if (!file) return 0;
  require(is_checkpoint(fuzz_file(input)));
  require_same(*file, read_checkpoint(fuzz_file(input)));
  require_same(*file, parse_checkpoint(as_checkpoint(to_safetensors(*file)), "again"));
  std::string damaged(input);  // any other bit is noticed
  damaged[size * 7919 % 8191 % size] ^= static_cast<char>(1 << size % 8);
  require(!result_or_none([&] { return parse_checkpoint(damaged, "damaged"); }));
  return 0;
}
