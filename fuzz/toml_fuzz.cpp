// TOML: what is read can be written, and is then read as the same.
#include "fuzz/fuzz.h"
#include "tandem/files/toml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const auto table = result_or_none([&] { return parse_toml(text_of(data, size), "file"); });
  if (!table) return 0;
  const std::string text = to_toml(*table);
  const TomlTable again = parse_toml(text, "again");
  require(to_toml(again) == text);
  require(again == *table || text.find("nan") != std::string::npos);  // which differs from itself
  for (const TomlEntry& entry : table->entries) {
    require(table->find(entry.key) == &entry && entry.line >= 1);
    plain_text(entry.value);
  }
  return 0;
}
