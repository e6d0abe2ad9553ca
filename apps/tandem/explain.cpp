// tandem explain: shows where a model found its prediction in a photograph.
#include "tandem/train/explain/explain.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/tandem/command.h"
#include "apps/tandem/common_flags.h"
#include "apps/tandem/output.h"
#include "apps/tandem/with_plugins.h"
#include "tandem/data/skipped_sample.h"
#include "tandem/image/save_image.h"
#include "tandem/report/provenance.h"
#include "tandem/text/message.h"
#include "tandem/train/explain/explain_report.h"
#include "tandem/train/progress.h"

namespace tandem {
namespace {

struct Flags {
  std::string model, out, json, method = "grad-cam", device = "auto";
  std::vector<std::string> paths;
  ExplainOptions options;
  bool sandbox = false;
  MatmulPrecision precision = MatmulPrecision::fp32;
};

bool is_page(const std::string& path) {
  return path.ends_with(".html") || path.ends_with(".htm");
}

// The reasons of files that were not read, and an Error if none was.
void report_unread(const ExplainedImages& explained) {
  std::vector<SkippedSample> unread;
  for (const ExplainedImage& image : explained.images)
    if (const Prediction& row = image.prediction; !row.error.empty())
      unread.push_back({.name = row.path, .reason = row.error, .kind = row.error_kind});
  if (unread.empty()) return;
  check(unread.size() < explained.images.size(), "[explain] {}{}: {}",
        unread.size() == 1 ? "" : fmt::format("none of {} images can be read, the first ", unread.size()),
        unread.front().name, unread.front().reason);
  print_message("Not read: {}\n", count_skipped(unread));
}

int run(const Flags& flags, const std::string& command_line) {
  // A few images do not justify the start-up time of the GPU: auto means the CPU.
  const Device device = flags.device == "auto" ? cpu_device : parse_device(flags.device);
  check_precision(flags.precision, device, "explain");
  const MatmulPrecisionScope precision(flags.precision);
  for (const std::string& path : {flags.out, flags.json}) check_output(path, "explain");
  check(is_page(flags.out) || is_image_name(flags.out),
        "[explain] {}: expected a name that ends in .html or one of {}", flags.out, image_endings());
  const std::vector<Fact> facts = provenance(command_line, 0);
  if (flags.sandbox) confine_decoders(flags.options.load.max_pixels);
  Model model = load_model(flags.model);
  model.module->to(device);
  ExplainOptions options = flags.options;
  options.method = parse_activation_method(flags.method);
  ExplainedImages explained;
  {
    Progress progress;
    options.on_progress = [&](std::size_t done, std::size_t images) {
      progress.update({.phase = "Explaining",
                       .position = static_cast<std::int64_t>(done),
                       .total = static_cast<std::int64_t>(images)});
    };
    explained = explain_paths(model, flags.paths, options);
  }
  report_unread(explained);
  if (is_page(flags.out)) {
    ExplainReport report = explain_report(explained, model.info, options.method);
    report.command = command_line;
    report.provenance = facts;
    std::erase_if(report.provenance, [](const Fact& fact) { return fact.name == "seed"; });
    write_output(flags.out, explain_page(report), "explain");
  } else {
    save_image(flags.out, explain_sheet(explained, model.info));
  }
  if (!flags.json.empty()) write_output(flags.json, explain_json(explained, model.info), "explain");
  if (explained.files > explained.images.size())
    print_message("{} of {} images, evenly chosen\n", explained.images.size(), explained.files);
  return 0;
}

}  // namespace

void add_explain_command(CLI::App& app, Action& action, const std::string& command_line) {
  CLI::App* command = app.add_subcommand("explain", "Show where a model found its prediction in photographs");
  command->footer(
      "Computes class activation maps: what the last convolutional layer used for the predicted class, or\n"
      "for --class, drawn over the photograph in its own pixels. FILE is a sheet (.png, .jpg) or a page\n"
      "(.html) with every photograph beside its map. One image keeps its size.\n"
      "Works for every model with convolutions: resnet*, mobilenet_v3_*, efficientnet_b0, cnn, lenet.\n"
      "Example: tandem explain runs/plates-resnet18-1 photos -o maps.html");
  auto flags = std::make_shared<Flags>();
  command->add_option("MODEL", flags->model, "Model file, checkpoint or run folder")
      ->required()
      ->type_name("");
  command->add_option("IMAGES", flags->paths, "Images or folders of images")->required()->type_name("");
  command->add_option("-o,--out", flags->out, "The sheet or page to write")->required()->type_name("FILE");
  command->add_option("--class", flags->options.class_name, "Explain this class; default: the predicted one")
      ->type_name("NAME");
  command
      ->add_option("--method", flags->method,
                   "grad-cam: channels weighted by their mean gradient; layer-cam: finer, every position by "
                   "its own")
      ->type_name("NAME")
      ->capture_default_str()
      ->check(usage_check([](const std::string& text) { parse_activation_method(text); }));
  command->add_option("--count", flags->options.count, "Images that are explained, evenly chosen")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number_check(1, max_explained_images));
  command
      ->add_option("--size", flags->options.max_side,
                   "Longest side of a picture in pixels; default: its own for one image, 384 for several")
      ->type_name("N")
      ->check(whole_number_check(64, max_explained_side));
  command->add_flag("--invert", flags->options.invert,
                    "Invert the gray values: dark on light becomes light on dark");
  add_json_flag(*command, flags->json, "The maps as JSON, to a file or standard output");
  command->add_option("--max-pixels", flags->options.load.max_pixels, "Treat larger images as unreadable")
      ->type_name("N")
      ->check(whole_number_check(1, std::int64_t{1} << 40));
  add_with_flag(*command, "The plugin of a model of your own: FILE.so or .cpp");
  add_device_flag(*command, flags->device, "the CPU");
  add_precision_flag(*command, flags->precision);
  add_sandbox_flag(*command, flags->sandbox);
  command->callback([flags, &action, command_line] {
    action = [flags, command_line] { return run(*flags, command_line); };
  });
}

}  // namespace tandem
