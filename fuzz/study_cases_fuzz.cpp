// The grammars of `tandem study` and `tandem grade`: cases, kernel sizes, clusters and profiles.
#include <string>
#include <vector>

#include "fuzz/fuzz_file.h"
#include "tandem/core/write_file.h"
#include "tandem/study/cluster_case.h"
#include "tandem/study/grade/profile.h"
#include "tandem/study/kernel_sweep.h"
#include "tandem/study/linear.h"
#include "tandem/study/studies.h"
#include "tandem/study/training_case.h"

namespace tandem {
namespace {

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += part + ',';
  return text;
}

void check_joined_cases(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size(); at += parts.back().size() + 1)
    parts.emplace_back(text.substr(at, text.find(',', at) - at));
  require(joined(join_cases(parts)) == joined(parts));
}

void check_profile(std::string_view text) {
  if (!text.ends_with(".toml")) result_or_none([&] { return read_profile(std::string(text)); });
  const auto profile = result_or_none([&] { return parse_profile(text, "file"); });
  if (!profile) return;
  require(!profile->parts.empty() && profile->total() > 0);
  const OutputFile file(".toml");
  write_file("fuzz", file.path(), text);
  require(read_profile(file.path()).hash == profile->hash);
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const std::string_view text = text_of(data, size);
  if (const auto kernel = result_or_none([&] { return parse_kernel_size(text); }))
    require(kernel->rows >= 1 && kernel->rows <= 65536 && kernel->columns >= 1 && kernel->columns <= 65536);
  if (const auto cluster = result_or_none([&] { return parse_cluster_size(text); }))
    require(cluster->nodes >= 1 && cluster->ranks >= 1 && cluster->total() >= 1);
  if (const auto training = result_or_none([&] { return parse_training_case(text); }))
    require(parse_training_case(training->name()).name() == training->name());
  if (const auto training = result_or_none([&] { return parse_cluster_case(text); }))
    require(parse_cluster_case(training->name()).name() == training->name());
  if (const auto linear = result_or_none([&] { return parse_linear_case(text); }))
    require(linear->inputs >= 1 && linear->outputs >= 1 && linear->batch >= 1);
  check_joined_cases(text);
  check_profile(text);
  for (const Study& study : studies().rows()) {
    result_or_none([&] { return check_case(study, text), 0; });
    if (study.kind == CaseKind::kernel)
      result_or_none([&] { return check_case(without_kernel(study), text), 0; });
  }
  return 0;
}
