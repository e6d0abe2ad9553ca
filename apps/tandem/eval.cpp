// tandem eval: evaluates a model on labeled images.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "apps/tandem/command.h"
#include "apps/tandem/terminal.h"
#include "tandem/train/evaluation_report.h"

namespace tandem {
namespace {

struct Flags {
  std::string model, data, from, device = "auto";
  bool json = false;
};

int run(const Flags& flags) {
  // One pass over a test set does not justify timing the devices: auto means the CPU.
  const Device device = flags.device == "auto" ? cpu_device : parse_device(flags.device);
  Model model = load_model(flags.model);
  model.module->to(device);
  const EvaluationReport report = evaluate_model(model, flags.data, flags.from);
  fmt::print("{}", flags.json ? evaluation_json(report) : evaluation_text(report, terminal_style(stdout)));
  return 0;
}

}  // namespace

void add_eval_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("eval", "Evaluate a trained model on labeled images");
  command->footer(
      "Prints accuracy, top-k accuracy, precision and recall per class, and the confusion matrix.\n"
      "Photographs are read from DATA/test, else DATA/val, else DATA, with one folder per class of the\n"
      "model; `plates` renders 500 test plates.\n"
      "Example: tandem eval runs/photos-resnet18-1 more-photos");
  auto flags = std::make_shared<Flags>();
  command->add_option("MODEL", flags->model, "Model file, checkpoint or run folder")
      ->required()
      ->type_name("");
  command
      ->add_option("DATA", flags->data,
                   "Labeled data, as for train; default: the data the model was trained on")
      ->type_name("");
  command->add_option("--from", flags->from, "Folder or archive that contains the data set")
      ->type_name("PATH");
  command->add_option("--device", flags->device, "auto (the CPU), cpu, cuda or cuda:N")
      ->type_name("DEVICE")
      ->check(device_check());
  command->add_flag("--json", flags->json, "Print JSON");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
