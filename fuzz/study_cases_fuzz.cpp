// The grammars of `tandem study` and `tandem grade`: cases, kernel sizes, clusters and profiles.
#include "fuzz/fuzz.h"
#include "tandem/study/cluster_case.h"
#include "tandem/study/grade/profile.h"
#include "tandem/study/kernel_sweep.h"
#include "tandem/study/linear.h"
#include "tandem/study/studies.h"
#include "tandem/study/training_case.h"

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
  if (const auto profile = result_or_none([&] { return parse_profile(text, "file"); }))
    require(!profile->parts.empty() && profile->total() > 0);
  for (const Study& study : studies().rows()) result_or_none([&] { return check_case(study, text), 0; });
  return 0;
}
