#include "apps/tandem/advice.h"

#include <fmt/format.h>

namespace tandem {
namespace {

struct Advice {
  std::string_view words;  // in the error's text
  std::string_view text;
};

constexpr Advice all_advice[] = {
    {"is not empty: expected a new or empty run folder", "give another --out, or --resume RUNDIR"},
    {"is in use by ", "wait for it or stop it, or give another --out"},
    {"the data changed since the run was saved",
     "--accept-changed-data goes on with it, another --out starts a new run"},
    {"belongs to another configuration", "give these options as they were, or start a new run with --out"},
    {" for validation, got ", "--validation 0 holds none out"},
    {"early_stopping requires images held out", "--validation N holds out N images"},
    {"the loss is not finite", "--lr sets the learning rate"},
    {"and cannot be fetched", "--from PATH gives its files"},
};

}  // namespace

std::string with_advice(std::string_view error) {
  for (const Advice& advice : all_advice)
    if (error.find(advice.words) != std::string_view::npos) return fmt::format("{} ({})", error, advice.text);
  return std::string(error);
}

}  // namespace tandem
