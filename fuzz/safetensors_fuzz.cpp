// Safetensors: what is read can be written, and is then read as the same.
#include "fuzz/fuzz_tensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const std::string_view input = text_of(data, size);
  const auto file = result_or_none([&] { return parse_safetensors(input, "file"); });
  if (!file) return 0;
  std::size_t bytes = 0;
  for (const NamedTensor& named : file->tensors) bytes += bytes_of(named.tensor).size();
  require(bytes + 8 <= size);  // the data of every tensor is in the file once
  require_rewritable(*file);
  return 0;
}
