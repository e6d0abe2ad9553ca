// tandem convert: writes weights of other formats as safetensors.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "apps/tandem/command.h"
#include "apps/tandem/output.h"
#include "tandem/files/convert_weights.h"

namespace tandem {
namespace {

struct Flags {
  std::string in, out, json;
  bool force = false;
};

int run(const Flags& flags) {
  check_output(flags.json, "convert");
  const ConvertReport report = convert_weights(flags.in, flags.out, flags.force);
  if (!is_stdout(flags.json)) {
    fmt::print("{}: {} tensors of {} ({}), {:.1f} MB\n", report.to, report.tensors.size(), report.from,
               report.format, static_cast<double>(report.bytes) / 1e6);
    if (!report.ignored.empty()) fmt::print("Not tensors, and left out: {}\n", report.ignored);
  }
  if (!flags.json.empty()) write_output(flags.json, to_json_text(report), "convert");
  return 0;
}

}  // namespace

void add_convert_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("convert", "Write PyTorch, ONNX or NumPy weights as safetensors");
  command->footer(
      "The way out of pickles: nothing in the file is executed, and a pickle with any name except those "
      "that\n"
      "weights need is rejected. Names, shapes, dtypes and bits are kept. Of a PyTorch checkpoint its state\n"
      "dict is taken, of an ONNX file its constants, of an .npz archive its arrays. The format is detected\n"
      "from the content.\n"
      "Example: tandem convert resnet18-f37072fd.pth resnet18.safetensors");
  auto flags = std::make_shared<Flags>();
  command->add_option("IN", flags->in, "The file to read: .pth, .pt, .bin, .ckpt, .onnx or .npz")
      ->required()
      ->type_name("");
  command->add_option("OUT", flags->out, "The file to write, NAME.safetensors")->required()->type_name("");
  command->add_flag("--force", flags->force, "Write over an existing file");
  add_json_flag(*command, flags->json, "The tensors as JSON, to a file or instead of the text");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
