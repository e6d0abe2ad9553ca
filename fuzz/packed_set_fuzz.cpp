// Packed sets: files and names lie inside the input, do not overlap, and are found by their names and in the
// folders of their names.
#include "tandem/files/packed_set.h"

#include <string>
#include <vector>

#include "fuzz/fuzz.h"

namespace tandem {
namespace {

// The number of files in a folder and those below it.
std::int64_t count_files(const PackedIndex& index, const std::string& folder) {
  const PackedIndex::Names names = index.names_in(folder);
  const std::string begin = folder.empty() ? "" : folder + '/';
  std::int64_t count = std::ssize(names.files);
  for (const std::string& name : names.files) require(index.find(begin + name).has_value());
  for (const std::string& name : names.folders) {
    require(index.has_folder(begin + name));
    count += count_files(index, begin + name);
  }
  return count;
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const std::string_view input = text_of(data, size);
  const auto index = result_or_none([&] { return PackedIndex(input, "file"); });
  if (!index) return 0;
  require(is_packed_set(input) && is_inside(index->options(), input));
  std::string_view last;
  const char* end = input.data() + 64;
  for (std::int64_t i = 0; i < index->count(); ++i) {
    const std::string_view name = index->name(i), bytes = index->bytes(i);
    require(is_inside(name, input) && is_inside(bytes, input) && last < name && bytes.data() >= end);
    require(index->find(name) == i && !index->find(std::string(name) + '/'));
    index->is_intact(i);
    last = name;
    end = bytes.data() + bytes.size();
  }
  require(count_files(*index, "") == index->count());
  return 0;
}
