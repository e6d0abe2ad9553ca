// tandem eval: how good a model is on labelled images.
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
  // One pass over a test set is not worth measuring devices for: auto means the CPU.
  const Device device = flags.device == "auto" ? cpu_device : parse_device(flags.device);
  Model model = load_model(flags.model);
  model.module->to(device);
  const EvaluationReport report = evaluate_model(model, flags.data, flags.from);
  fmt::print("{}", flags.json ? evaluation_json(report) : evaluation_text(report, terminal_style(stdout)));
  return 0;
}

}  // namespace

void add_eval_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("eval", "Measure a trained model on labelled images");
  command->footer(
      "Prints accuracy, top-k, precision and recall of each class, and the confusion matrix.\n"
      "Photographs are those of DATA/test, else DATA/val, else DATA, with a folder for each of the model's\n"
      "classes; `plates` are 500 fresh ones.\n"
      "Example: tandem eval runs/photos-resnet18-1/best.safetensors more-photos");
  auto flags = std::make_shared<Flags>();
  command->add_option("MODEL", flags->model, "A model file: best.safetensors of a run")
      ->required()
      ->type_name("");
  command->add_option("DATA", flags->data, "Labelled data as for train; by default what it was trained on")
      ->type_name("");
  command->add_option("--from", flags->from, "A folder or archive to take the data set from")
      ->type_name("PATH");
  command->add_option("--device", flags->device, "auto (the CPU), cpu, cuda or cuda:N")
      ->type_name("DEVICE")
      ->check(device_check());
  command->add_flag("--json", flags->json, "Print JSON");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
