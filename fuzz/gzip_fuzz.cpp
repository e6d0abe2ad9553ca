// Gzip: two streams after one another decompress to both contents, and a limit is never exceeded.
#include "fuzz/fuzz.h"
#include "tandem/files/gzip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  constexpr std::size_t max_bytes = 1 << 16;
  const std::string_view input = text_of(data, size);
  const auto contents = result_or_none([&] { return gunzip(input, max_bytes, "file"); });
  if (!contents) return 0;
  require(is_gzip(input) && contents->size() <= max_bytes);
  const std::string twice = gunzip(std::string(input) + std::string(input), 2 * max_bytes, "twice");
  require(twice == *contents + *contents);
  if (!contents->empty())
    require(!result_or_none([&] { return gunzip(input, contents->size() - 1, "file"); }));
  require(!result_or_none([&] { return gunzip(input.substr(0, size - 1), max_bytes, "file"); }));
  return 0;
}
