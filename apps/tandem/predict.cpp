// tandem predict: what a model says of pictures.
#include "tandem/train/predict.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/tandem/command.h"
#include "tandem/core/write_file.h"
#include "tandem/image/encode_png.h"
#include "tandem/report/text.h"
#include "tandem/train/prediction_sheet.h"

namespace tandem {
namespace {

struct Flags {
  std::string model, csv, json, sheet, device = "auto";
  std::vector<std::string> paths;
  PredictOptions options;
};

int run(const Flags& flags) {
  // A few pictures are not worth the way to the GPU: auto means the CPU.
  const Device device = flags.device == "auto" ? cpu_device : parse_device(flags.device);
  for (const std::string& path : {flags.csv, flags.json, flags.sheet})
    if (!path.empty()) check_writable("predict", path);
  Model model = load_model(flags.model);
  model.module->to(device);
  const std::vector<std::string>& classes = model.info.classes;
  const std::vector<Prediction> rows = predict_paths(model, flags.paths, flags.options);
  const std::size_t errors = error_count(rows);
  const bool none = errors == rows.size();
  if (!flags.csv.empty()) write_file("predict", flags.csv, predictions_csv(rows, classes));
  if (!flags.json.empty()) write_file("predict", flags.json, predictions_json(rows, classes));
  if (!flags.sheet.empty() && !none)
    save_png(flags.sheet, prediction_sheet(rows, classes, flags.options.reading));
  const Prediction* first = nullptr;
  for (const Prediction& row : rows)
    if (!row.error.empty() && first == nullptr) first = &row;
  check(!none, "[predict] {}{}: {}",
        rows.size() == 1 ? "" : fmt::format("none of {} images can be read, the first ", rows.size()),
        none ? first->path : "", none ? first->error : "");
  if (flags.csv.empty() && flags.json.empty()) fmt::print("{}", predictions_csv(rows, classes));
  if (errors > 0)
    fmt::print(stderr, "{} of {} images could not be read, the first {}\n", errors, rows.size(),
               one_line(fmt::format("{}: {}", first->path, first->error)));
  if (!flags.sheet.empty() && rows.size() > most_on_a_sheet)
    fmt::print(stderr, "The sheet shows the first {} of {} images\n", most_on_a_sheet, rows.size());
  return 0;
}

}  // namespace

void add_predict_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("predict", "Say what pictures show, with a trained model");
  command->footer(
      "A row an image: path,class,probability and a column a class; where an image cannot be read, its\n"
      "row says why in a last column, error. The status is 1 only when none can be read.\n"
      "A model of photographs brings its own transform. For others pictures are made grey and resized to\n"
      "the model's size; models of mnist and digits expect light on dark: --invert is for ink on paper.\n"
      "Pictures are JPEG, PNG, WebP, BMP, PPM or PGM; an idx file gives a row an image.\n"
      "Example: tandem predict runs/plates-resnet18-1/best.safetensors photos --sheet sheet.png");
  auto flags = std::make_shared<Flags>();
  command->add_option("MODEL", flags->model, "A model file: best.safetensors of a run")
      ->required()
      ->type_name("");
  command->add_option("PATH", flags->paths, "Pictures, folders of pictures, or idx files of images")
      ->required()
      ->type_name("");
  command->add_flag("--invert", flags->options.invert, "Turn dark on light into light on dark");
  command->add_option("--csv", flags->csv, "Write the rows to a file instead of standard output")
      ->type_name("FILE");
  command->add_option("--json", flags->json, "Write the rows as JSON instead")->type_name("FILE");
  command->add_option("--sheet", flags->sheet, "Draw the pictures with class and probability, as PNG")
      ->type_name("FILE");
  command
      ->add_option("--max-pixels", flags->options.reading.max_pixels,
                   "Larger pictures are taken for bad ones")
      ->type_name("N")
      ->check(whole_number_check(1, std::int64_t{1} << 40));
  command->add_flag("--scaled-decode", flags->options.reading.scaled,
                    "Decode JPEGs smaller where that will do: faster, not exact");
  command->add_option("--device", flags->device, "auto (the CPU), cpu, cuda or cuda:N")
      ->type_name("DEVICE")
      ->check(device_check());
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
