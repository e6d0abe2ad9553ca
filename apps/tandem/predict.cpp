// tandem predict: classifies images with a trained model.
#include "tandem/train/predict.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/tandem/command.h"
#include "tandem/core/write_file.h"
#include "tandem/image/encode_png.h"
#include "tandem/text/message.h"
#include "tandem/text/utf8.h"
#include "tandem/train/prediction_sheet.h"

namespace tandem {
namespace {

struct Flags {
  std::string model, csv, json, sheet, device = "auto";
  std::vector<std::string> paths;
  PredictOptions options;
};

int run(const Flags& flags) {
  // A few images do not justify the start-up time of the GPU: auto means the CPU.
  const Device device = flags.device == "auto" ? cpu_device : parse_device(flags.device);
  for (const std::string& path : {flags.csv, flags.json, flags.sheet})
    if (!path.empty()) check_writable("predict", path);
  Model model = load_model(flags.model);
  model.module->to(device);
  const std::vector<std::string>& classes = model.info.classes;
  const std::vector<Prediction> rows = predict_paths(model, flags.paths, flags.options);
  const std::size_t errors = error_count(rows);
  const bool all_failed = errors == rows.size();
  if (!flags.csv.empty()) write_file("predict", flags.csv, predictions_csv(rows, classes));
  if (!flags.json.empty()) write_file("predict", flags.json, predictions_json(rows, classes));
  if (!flags.sheet.empty() && !all_failed)
    save_png(flags.sheet, prediction_sheet(rows, classes, flags.options.decode));
  const Prediction* first = nullptr;
  for (const Prediction& row : rows)
    if (!row.error.empty() && first == nullptr) first = &row;
  check(!all_failed, "[predict] {}{}: {}",
        rows.size() == 1 ? "" : fmt::format("none of {} images can be read, the first ", rows.size()),
        all_failed ? first->path : "", all_failed ? first->error : "");
  if (flags.csv.empty() && flags.json.empty()) fmt::print("{}", predictions_csv(rows, classes));
  if (errors > 0)
    print_message("Not read: {}; their rows have the reasons\n", count_skipped(unread_files(rows)));
  if (!flags.sheet.empty() && rows.size() > max_sheet_images)
    print_message("The sheet shows the first {} of {} images\n", max_sheet_images, rows.size());
  return 0;
}

}  // namespace

void add_predict_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("predict", "Classify images with a trained model");
  command->footer(
      "Prints one row per image: path,class,probability and one column per class. If an image cannot be\n"
      "read, its row has the reason in a last column, error. The status is 1 only if none can be read.\n"
      "Models for photographs include their transform. For other models, images are converted to gray and\n"
      "resized; models for mnist and digits expect light on dark: use --invert for ink on paper.\n"
      "Formats: JPEG, PNG, WebP, BMP, PPM, PGM, TIFF, HEIC; an idx file gives one row per image.\n"
      "Example: tandem predict runs/plates-resnet18-1/best.safetensors photos --sheet sheet.png");
  auto flags = std::make_shared<Flags>();
  command->add_option("MODEL", flags->model, "Model file, checkpoint or run folder")
      ->required()
      ->type_name("");
  command->add_option("PATH", flags->paths, "Images, folders of images, or idx files")
      ->required()
      ->type_name("");
  command->add_flag("--invert", flags->options.invert,
                    "Invert the gray values: dark on light becomes light on dark");
  command->add_option("--csv", flags->csv, "Write the rows to a file instead of standard output")
      ->type_name("FILE");
  command->add_option("--json", flags->json, "Write the rows as JSON instead")->type_name("FILE");
  command->add_option("--sheet", flags->sheet, "Write a PNG sheet of the images with class and probability")
      ->type_name("FILE");
  command->add_option("--max-pixels", flags->options.decode.max_pixels, "Treat larger images as unreadable")
      ->type_name("N")
      ->check(whole_number_check(1, std::int64_t{1} << 40));
  command->add_flag("--scaled-decode", flags->options.decode.scaled,
                    "Decode JPEGs at reduced size where sufficient: faster, not exact");
  command->add_option("--device", flags->device, "auto (the CPU), cpu, cuda or cuda:N")
      ->type_name("DEVICE")
      ->check(device_check());
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
