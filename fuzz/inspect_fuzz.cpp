// tandem inspect on weights of every format: it describes what reading gives, and shows the names in a
// pickle whether or not it can be read.
#include <nlohmann/json.hpp>

#include "fuzz/fuzz_file.h"
#include "tandem/files/inspect.h"
#include "tandem/files/weights.h"
#include "tandem/text/table.h"
#include "tandem/text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const std::string_view input = text_of(data, size);
  const auto facts = result_or_none([&] { return inspect_weights(fuzz_file(input)); });
  const auto file = result_or_none([&] { return parse_weights(input, "file"); });
  require(facts || !file);
  if (!facts) return 0;
  require(facts->problem.empty() == file.has_value() && facts->bytes == size);
  require(!file || facts->tensors.size() == file->tensors.size());
  bool is_finite = true;
  for (const TensorFacts& tensor : facts->tensors) {
    is_finite = is_finite && tensor.not_finite == 0;
    require(tensor.not_finite >= 0 && tensor.not_finite <= tensor.shape.numel());
    require(tensor.min <= tensor.max && tensor.min == tensor.min && tensor.max == tensor.max);
  }
  if (file)
    require(is_finite == result_or_none([&] {
                           return check_finite(read_weights(fuzz_file(input)), "file"), 0;
                         }).has_value());
  const auto json = nlohmann::json::parse(to_json_text(*facts));
  require(json.at("tensors").size() == facts->tensors.size());
  const std::string text = to_text(*facts, TextStyle{});
  for (const char c : text) require(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F));
  require(is_utf8(text));
  return 0;
}
