// tandem predict: what a model says of pictures.
#include "tandem/train/predict.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/tandem/command.h"
#include "tandem/core/write_file.h"

namespace tandem {
namespace {

struct Flags {
  std::string model, csv, device = "auto";
  std::vector<std::string> paths;
  bool invert = false;
};

int run(const Flags& flags) {
  // A few pictures are not worth the way to the GPU: auto means the CPU.
  const Device device = flags.device == "auto" ? cpu_device : parse_device(flags.device);
  if (!flags.csv.empty()) check_writable("predict", flags.csv);
  Model model = load_model(flags.model);
  model.module->to(device);
  const std::vector<std::string>& classes = model.info.classes;
  std::string text = prediction_csv_header(classes);
  for (const std::string& path : flags.paths)
    for (const Prediction& prediction : predict_file(model, path, {.invert = flags.invert}))
      text += prediction_csv_row(prediction, classes);
  if (flags.csv.empty())
    fmt::print("{}", text);
  else
    write_file("predict", flags.csv, text);
  return 0;
}

}  // namespace

void add_predict_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("predict", "Say what pictures show, with a trained model");
  command->footer(
      "Pictures are made grey and resized to the model's size. Models of mnist and digits expect light on\n"
      "dark: use --invert for ink on paper. An idx file gives a row an image.\n"
      "Example: tandem predict runs/mnist-mlp-1/best.safetensors seven.png --invert");
  auto flags = std::make_shared<Flags>();
  command->add_option("MODEL", flags->model, "A model file: best.safetensors of a run")
      ->required()
      ->type_name("");
  command->add_option("PATH", flags->paths, "Pictures (JPEG, PNG, BMP, PPM, PGM) or idx files of images")
      ->required()
      ->type_name("");
  command->add_flag("--invert", flags->invert, "Turn dark on light into light on dark");
  command->add_option("--csv", flags->csv, "Write the rows to a file instead of standard output")
      ->type_name("FILE");
  command->add_option("--device", flags->device, "auto (the CPU), cpu, cuda or cuda:N")
      ->type_name("DEVICE")
      ->check(device_check());
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
