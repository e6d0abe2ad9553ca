// Checkpoints: read only with the right length and digest, and then as the safetensors file inside. What is
// read can be written; a damaged one is replaced by the previous one.
#include "fuzz/fuzz_checkpoint.h"
#include "fuzz/fuzz_file.h"
#include "fuzz/fuzz_tensors.h"
#include "tandem/files/checkpoint.h"

namespace tandem {
namespace {

void check_generations(const TensorFile& file, std::string_view input, std::string_view damaged) {
  const OutputFile last(".ckpt"), previous(".previous");
  require(!read_newest_checkpoint(last.path(), previous.path()));
  write_checkpoint(last.path(), file);
  const auto written = read_newest_checkpoint(last.path(), previous.path());
  require(written->problem.empty());
  require_same(written->file, parse_checkpoint(as_checkpoint(to_safetensors(file)), "again"));
  write_file("fuzz", previous.path(), input);
  write_file("fuzz", last.path(), damaged);
  const auto older = read_newest_checkpoint(last.path(), previous.path());
  require(!older->problem.empty());
  require_same(older->file, file);
  write_file("fuzz", previous.path(), damaged);
  require(!result_or_none([&] { return read_newest_checkpoint(last.path(), previous.path()); }));
}

}  // namespace
}  // namespace tandem

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
  check_generations(*file, input, damaged);
  return 0;
}
