// tandem predict: classifies images with a trained model.
#include "tandem/train/predict.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/tandem/command.h"
#include "apps/tandem/common_flags.h"
#include "apps/tandem/output.h"
#include "apps/tandem/with_plugins.h"
#include "tandem/core/clock.h"
#include "tandem/image/save_image.h"
#include "tandem/text/format_number.h"
#include "tandem/text/message.h"
#include "tandem/text/utf8.h"
#include "tandem/train/prediction_sheet.h"
#include "tandem/train/progress.h"

namespace tandem {
namespace {

struct Flags {
  std::string model, csv, json, labels, sheet, device = "auto";
  std::size_t count = max_sheet_images;
  std::vector<std::string> paths;
  PredictOptions options;
  bool sandbox = false;
  MatmulPrecision precision = MatmulPrecision::fp32;
};

// "500 images in 1.93 s (259 images/s); of 500 in folders of their class 497 are right (99.4 %)"
std::string summary(const std::vector<Prediction>& rows, const std::vector<std::string>& classes,
                    double elapsed_ms) {
  std::size_t known = 0, right = 0;
  for (const Prediction& row : rows) {
    const auto truth = row.error.empty() ? class_of_folder(row.path, classes) : std::nullopt;
    known += truth ? 1 : 0;
    right += truth && *truth == row.chosen ? 1 : 0;
  }
  const auto images = static_cast<double>(rows.size());
  std::string text =
      fmt::format("{} image{} in {} ({} images/s)", rows.size(), rows.size() == 1 ? "" : "s",
                  format_number(elapsed_ms, Unit::milliseconds), format_number(1000 * images / elapsed_ms));
  if (known > 0)
    text += fmt::format("; of {} in folders of their class {} are right ({:.1f} %)", known, right,
                        100 * static_cast<double>(right) / static_cast<double>(known));
  return text;
}

// All predictions, with a progress bar.
std::vector<Prediction> predictions(Model& model, const Flags& flags) {
  PredictOptions options = flags.options;
  Progress progress;
  const Stopwatch watch;
  options.on_progress = [&](std::size_t done, std::size_t files) {
    progress.update({.phase = "Predicting",
                     .position = static_cast<std::int64_t>(done),
                     .total = static_cast<std::int64_t>(files),
                     .samples_per_second = 1000 * static_cast<double>(done) / watch.elapsed_ms()});
  };
  return predict_paths(model, flags.paths, options);
}

int run(const Flags& flags) {
  // A few images do not justify the start-up time of the GPU: auto means the CPU.
  const Device device = flags.device == "auto" ? cpu_device : parse_device(flags.device);
  check_precision(flags.precision, device, "predict");
  const MatmulPrecisionScope precision(flags.precision);
  for (const std::string& path : {flags.csv, flags.json, flags.labels, flags.sheet})
    check_output(path, "predict");
  check(flags.sheet.empty() || is_image_name(flags.sheet),
        "[predict] {}: expected a name that ends in one of {}", flags.sheet, image_endings());
  if (flags.sandbox) confine_decoders(flags.options.decode.max_pixels);
  Model model = load_model(flags.model);
  model.module->to(device);
  const std::vector<std::string>& classes = model.info.classes;
  const Stopwatch watch;
  const std::vector<Prediction> rows = predictions(model, flags);
  const double elapsed_ms = watch.elapsed_ms();
  const std::size_t errors = error_count(rows);
  const bool all_failed = errors == rows.size();
  if (!flags.csv.empty()) write_output(flags.csv, predictions_csv(rows, classes), "predict");
  if (!flags.json.empty()) write_output(flags.json, predictions_json(rows, classes), "predict");
  if (!flags.labels.empty()) write_output(flags.labels, id_label_csv(rows, classes), "predict");
  if (!flags.sheet.empty() && !all_failed)
    save_image(flags.sheet, prediction_sheet(rows, classes, flags.options.decode, flags.count));
  const Prediction* first = nullptr;
  for (const Prediction& row : rows)
    if (!row.error.empty() && first == nullptr) first = &row;
  check(!all_failed, "[predict] {}{}: {}",
        rows.size() == 1 ? "" : fmt::format("none of {} images can be read, the first ", rows.size()),
        all_failed ? first->path : "", all_failed ? first->error : "");
  if (flags.csv.empty() && flags.json.empty() && flags.labels.empty())
    print_output("{}", predictions_csv(rows, classes));
  if (errors > 0)
    print_message("Not read: {}; their rows have the reasons\n", count_skipped(unread_files(rows)));
  if (!flags.sheet.empty() && rows.size() > flags.count)
    print_message("The sheet shows {} of {} images, evenly chosen\n", flags.count, rows.size());
  print_message("{}\n", summary(rows, classes, elapsed_ms));
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
      "Formats: JPEG, PNG, WebP, BMP, PBM, PGM, PPM, TIFF, HEIC; an idx file gives one row per image.\n"
      "Example: tandem predict runs/plates-resnet18-1 photos --sheet sheet.png");
  auto flags = std::make_shared<Flags>();
  command->add_option("MODEL", flags->model, "Model file, checkpoint or run folder")
      ->required()
      ->type_name("");
  command->add_option("PATH", flags->paths, "Images, folders of images, or idx files")
      ->required()
      ->type_name("");
  command->add_flag("--invert", flags->options.invert,
                    "Invert the gray values: dark on light becomes light on dark");
  command->add_option("--csv", flags->csv, "Write the rows to a file, - for standard output")
      ->type_name("FILE");
  add_json_flag(*command, flags->json, "The rows as JSON, to a file or instead of CSV");
  command->add_option("--labels", flags->labels, "Write id,label rows: file name without its ending, class")
      ->type_name("FILE");
  command->add_option("--sheet", flags->sheet, "Write the images with class and probability on one sheet")
      ->type_name("FILE");
  command->add_option("--count", flags->count, "Images on the sheet")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number_check(1, max_sheet_images));
  command->add_option("--max-pixels", flags->options.decode.max_pixels, "Treat larger images as unreadable")
      ->type_name("N")
      ->check(whole_number_check(1, std::int64_t{1} << 40));
  add_views_flag(*command, flags->options.views);
  command->add_flag("--scaled-decode", flags->options.decode.scaled,
                    "Decode JPEGs at reduced size where sufficient: faster, not exact");
  add_with_flag(*command, "The plugin of a model of your own: FILE.so or .cpp");
  add_device_flag(*command, flags->device, "the CPU");
  add_precision_flag(*command, flags->precision);
  add_sandbox_flag(*command, flags->sandbox);
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
