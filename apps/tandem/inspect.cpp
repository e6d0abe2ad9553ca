// tandem inspect: shows the contents of a weight file, an ONNX file or a packed set.
#include "tandem/files/inspect.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "apps/tandem/command.h"
#include "apps/tandem/output.h"
#include "apps/tandem/terminal.h"
#include "tandem/files/inspect_packed.h"
#include "tandem/files/onnx/inspect_onnx.h"

namespace tandem {
namespace {

struct Flags {
  std::string file, json;
};

// The best model of a run folder.
std::filesystem::path weight_file(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::path best = path / "best.safetensors";
  return std::filesystem::is_regular_file(best, ignored) ? best : path;
}

template <class Facts>
int show(const Facts& facts, const Flags& flags) {
  if (!is_stdout(flags.json)) print_output("{}", to_text(facts, terminal_style(stdout)));
  if (!flags.json.empty()) write_output(flags.json, to_json_text(facts), "inspect");
  std::fflush(stdout);  // before the error goes to stderr
  if (!facts.problem.empty()) throw Error(facts.problem);
  return 0;
}

int run(const Flags& flags) {
  check_output(flags.json, "inspect");
  const std::filesystem::path file = weight_file(flags.file);
  if (is_packed_file(file)) return show(inspect_packed(file), flags);
  return is_onnx_file(file) ? show(inspect_onnx(file), flags) : show(inspect_weights(file), flags);
}

}  // namespace

void add_inspect_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("inspect", "Show what a weight file, ONNX file or packed set holds");
  command->footer(
      "Reads .safetensors, and .pth or .pt as saved by PyTorch. For a pickle it lists every name that\n"
      "loading it in Python would import or call, wherever it stands; a file with any name except those\n"
      "that weights need is SUSPICIOUS and rejected (status 1). Parameters counts the floating-point "
      "values.\n"
      "Of an ONNX file it shows inputs, outputs, operators and metadata; operators that Tandem does not "
      "know\n"
      "and files with further data are named, and those files are not opened. A graph with a cycle is\n"
      "reported (status 1). Of a packed set every checksum is compared (status 1 if one is wrong).\n"
      "Examples: tandem inspect resnet18-f37072fd.pth\n"
      "          tandem inspect runs/mnist-mlp-1/best.safetensors --json");
  auto flags = std::make_shared<Flags>();
  command
      ->add_option("FILE", flags->file,
                   "Weight file, pickle, ONNX file, packed set, or run folder: its best model")
      ->required()
      ->type_name("");
  add_json_flag(*command, flags->json, "JSON to a file, or instead of the tables");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
