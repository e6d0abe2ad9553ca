// Tar archives: files are parts of the archive, one after the other.
#include "fuzz/fuzz.h"
#include "tandem/files/tar.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const std::string_view input = text_of(data, size);
  const auto entries = result_or_none([&] { return read_tar(input, "file"); });
  if (!entries) return 0;
  const char* end = input.data();
  for (const TarEntry& entry : *entries) {
    require(is_inside(entry.contents, input) && entry.contents.data() >= end + 512);
    require(entry.name.find('\0') == std::string::npos);
    end = entry.contents.data() + entry.contents.size();
  }
  return 0;
}
