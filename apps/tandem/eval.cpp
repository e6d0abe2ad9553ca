// tandem eval: evaluates a model on labeled images.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "apps/tandem/advice.h"
#include "apps/tandem/command.h"
#include "apps/tandem/common_flags.h"
#include "apps/tandem/output.h"
#include "apps/tandem/terminal.h"
#include "apps/tandem/with_plugins.h"
#include "tandem/core/clock.h"
#include "tandem/image/decode.h"
#include "tandem/text/format_number.h"
#include "tandem/text/message.h"
#include "tandem/train/evaluate.h"
#include "tandem/train/evaluation_report.h"
#include "tandem/train/progress.h"

namespace tandem {
namespace {

struct Flags {
  std::string model, data, from, json, html, device = "auto";
  int views = 1;
  bool own_data = false;
  bool sandbox = false;
  MatmulPrecision precision = MatmulPrecision::fp32;
};

int run(const Flags& flags) {
  // One pass over a test set does not justify timing the devices: auto means the CPU.
  const Device device = flags.device == "auto" ? cpu_device : parse_device(flags.device);
  check_precision(flags.precision, device, "eval");
  const MatmulPrecisionScope precision(flags.precision);
  for (const std::string& path : {flags.json, flags.html}) check_output(path, "eval");
  tell_named_data(flags.data);
  if (flags.sandbox) confine_decoders(LoadOptions().max_pixels);
  Model model = load_model(flags.model);
  model.module->to(device);
  Progress progress;
  const Stopwatch watch;
  const EvaluationObserver observer([&](std::int64_t done, std::int64_t images) {
    progress.update({.phase = "Evaluating", .position = done, .total = images});
  });
  const RenderObserver rendering = observe_rendering(progress);
  const EvaluationReport report = evaluate_model(model, flags.data,
                                                 {.from = flags.from,
                                                  .pictures = !flags.html.empty(),
                                                  .views = flags.views,
                                                  .own_data = flags.own_data});
  progress.clear();
  print_message("{} images in {}, reading included\n", format_count(report.images),
                format_number(watch.elapsed_ms(), Unit::milliseconds));
  if (!is_stdout(flags.json)) print_output("{}", evaluation_text(report, terminal_style(stdout)));
  if (!flags.json.empty()) write_output(flags.json, evaluation_json(report), "eval");
  if (!flags.html.empty()) write_output(flags.html, evaluation_page(report), "eval");
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
      ->add_option(
          "DATA", flags->data,
          "Labeled data, as for train; default: the data set the model was trained on, if it is at hand")
      ->type_name("");
  command->add_flag("--own-data", flags->own_data,
                    "Without DATA: use what the model file names, also a folder or a download");
  command->add_option("--from", flags->from, "Folder or archive that contains the data set")
      ->type_name("PATH");
  add_with_flag(*command, "The plugin of a model of your own: FILE.so or .cpp");
  add_device_flag(*command, flags->device, "the CPU");
  add_precision_flag(*command, flags->precision);
  add_json_flag(*command, flags->json, "JSON to a file, or instead of the tables");
  add_views_flag(*command, flags->views);
  command->add_option("--html", flags->html, "A page with the confusion matrix, pictures and curves")
      ->type_name("FILE");
  add_sandbox_flag(*command, flags->sandbox);
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
