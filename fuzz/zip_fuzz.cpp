// Zip archives: entries are files inside the archive with different names, and are unpacked to their size or
// refused.
#include <set>
#include <string>

#include "fuzz/fuzz.h"
#include "tandem/files/zip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const std::string_view input = text_of(data, size);
  const auto entries = result_or_none([&] { return read_zip(input, "file"); });
  if (!entries) return 0;
  std::set<std::string_view> names;
  std::uint64_t packed = 0, left = 1 << 20;
  const std::size_t directory = 22 + 46 * entries->size();  // at least, and at the end
  for (const ZipEntry& entry : *entries) {
    require(names.insert(entry.name).second && !entry.name.ends_with('/'));
    require(entry.deflated || entry.size == entry.packed.size());
    require(size >= directory && is_inside(entry.packed, input.substr(0, size - directory)));
    packed += entry.packed.size();
    if (entry.size > left) continue;
    left -= entry.size;
    std::string memory;
    const auto contents = result_or_none([&] { return unpack_entry(entry, memory, "file"); });
    require(!contents || (contents->size() == entry.size &&
                          is_inside(*contents, entry.deflated ? std::string_view(memory) : input)));
  }
  require(packed <= size);  // no two overlap
  return 0;
}
