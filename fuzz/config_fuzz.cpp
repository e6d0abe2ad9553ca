// Configuration files of `tandem train`: the options that were read give a file that is read as the same, and
// every value can be given as a flag.
#include "fuzz/fuzz.h"
#include "tandem/train/options.h"

namespace tandem {
namespace {

TrainOptions options_of(const TomlTable& table) {
  TrainOptions options;
  apply_table(options, table);
  return options;
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const auto options =
      result_or_none([&] { return options_of(parse_toml(text_of(data, size), "run.toml")); });
  if (!options) return 0;
  const TomlTable table = to_table(*options);
  const TrainOptions again = options_of(parse_toml(to_toml(table), "again"));
  require(to_table(again) == table && differing_keys(again, *options).empty());
  TrainOptions flags;
  for (const TrainField& field : train_fields())
    field.set(flags, parse_field_value(field, plain_text(table.find(field.key)->value)));
  require(to_table(flags) == table);
  result_or_none([&] { return check_options(*options), 0; });
  for (const bool photographs : {false, true})
    result_or_none([&] { return resolve_options(*options, photographs), 0; });
  return 0;
}
