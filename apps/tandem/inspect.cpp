// tandem inspect: shows the contents of a weight file.
#include "tandem/files/inspect.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "apps/tandem/command.h"
#include "apps/tandem/terminal.h"

namespace tandem {
namespace {

struct Flags {
  std::string file;
  bool json = false;
};

int run(const Flags& flags) {
  const WeightFacts facts = inspect_weights(flags.file);
  fmt::print("{}", flags.json ? to_json_text(facts) : to_text(facts, terminal_style(stdout)));
  std::fflush(stdout);  // before the error goes to stderr
  if (!facts.problem.empty()) throw Error(facts.problem);
  return 0;
}

}  // namespace

void add_inspect_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("inspect", "Show the contents of a weight file without executing any of it");
  command->footer(
      "Reads .safetensors, and .pth or .pt as saved by PyTorch. For a pickle it lists every name that\n"
      "loading it in Python would import or call; a pickle that calls anything except the functions that\n"
      "rebuild tensors is rejected (status 1). Parameters counts the floating-point values.\n"
      "Examples: tandem inspect resnet18-f37072fd.pth\n"
      "          tandem inspect runs/mnist-mlp-1/best.safetensors --json");
  auto flags = std::make_shared<Flags>();
  command->add_option("FILE", flags->file, "Weight file or pickle")->required()->type_name("");
  command->add_flag("--json", flags->json, "Print JSON instead of tables");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
