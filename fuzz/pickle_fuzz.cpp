// The pickle machine: every reference is to a value, a name or a text that exists, and nothing is larger
// than the pickle.
#include <algorithm>

#include "fuzz/fuzz.h"
#include "tandem/files/unpickle.h"

namespace tandem {
namespace {

void check_value(const Pickle& pickle, const PickleValue& value, std::string_view input) {
  const auto exists = [&](std::uint32_t id) { return id < pickle.values.size(); };
  require(std::ranges::all_of(value.items, exists));
  require(value.text.empty() || is_inside(value.text, input) ||
          std::ranges::any_of(pickle.texts, [&](const auto& text) { return is_inside(value.text, text); }));
  switch (value.kind) {
    case PickleKind::global:
      require(value.integer >= 0 && value.integer < std::ssize(pickle.names));
      require(!pickle.name_of(value).empty());
      break;
    case PickleKind::call:
      require(exists(value.callee) && exists(value.arguments));
      break;
    case PickleKind::persistent:
      require(value.items.size() == 1);
      break;
    case PickleKind::dict:
      require(value.items.size() % 2 == 0);
      break;
    case PickleKind::boolean:
      require(value.integer == 0 || value.integer == 1);
      break;
    default:
      break;
  }
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const std::string_view input = text_of(data, size);
  const auto pickle = result_or_none([&] { return parse_pickle(input, "file"); });
  if (!pickle) return 0;
  require(pickle->root < pickle->values.size() && pickle->values.size() <= size);
  require(pickle->size > 0 && pickle->size <= size && input[pickle->size - 1] == '.');
  for (const PickleValue& value : pickle->values) check_value(*pickle, value, input);
  const Pickle again = parse_pickle(input.substr(0, pickle->size), "again");  // what follows has no effect
  require(again.values.size() == pickle->values.size() && again.names.size() == pickle->names.size());
  return 0;
}
