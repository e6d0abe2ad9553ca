// tandem check: checks a folder of images.
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "apps/tandem/command.h"
#include "apps/tandem/common_flags.h"
#include "apps/tandem/flag_table.h"
#include "apps/tandem/output.h"
#include "apps/tandem/terminal.h"
#include "tandem/report/provenance.h"
#include "tandem/study/check/check_data.h"
#include "tandem/study/probe/probe_features.h"
#include "tandem/text/format_number.h"
#include "tandem/text/message.h"
#include "tandem/train/progress.h"

namespace tandem {
namespace {

struct Flags {
  CheckDataOptions options;
  std::string data, html, json, fix, device = "auto";
  bool no_sandbox = false;
};

int run(const Flags& flags, const std::string& command_line) {
  for (const std::string& path : {flags.html, flags.json, flags.fix}) check_output(path, "check");
  const std::vector<Fact> facts = provenance(command_line, 0);
  CheckDataOptions options = flags.options;
  options.data = flags.data;
  options.pictures = !flags.html.empty();
  options.device = flags.device == "auto" ? default_device() : parse_device(flags.device);
  if (!flags.no_sandbox) confine_decoders(options.max_pixels);
  Progress progress;
  options.on_progress = [&](const char* phase, std::int64_t done, std::int64_t total) {
    progress.update({.phase = phase, .position = done, .total = total});
  };
  CheckReport report = check_data(options);
  progress.clear();
  report.provenance = facts;
  std::erase_if(report.provenance, [](const Fact& fact) { return fact.name == "seed"; });
  print_message("Read and compared {} image{} in {} ({}/s)\n", format_count(report.images),
                report.images == 1 ? "" : "s", format_duration(report.seconds),
                format_rounded(static_cast<double>(report.images) / report.seconds));
  if (!is_stdout(flags.json) && !is_stdout(flags.html) && !is_stdout(flags.fix)) {
    TextStyle style = terminal_style(stdout);
    style.width = 80;
    print_output("{}", check_text(report, style));
  }
  if (!flags.html.empty()) write_output(flags.html, check_page(report), "check");
  if (!flags.json.empty()) write_output(flags.json, check_json(report), "check");
  if (!flags.fix.empty()) write_output(flags.fix, check_fixes_csv(report), "check");
  return 0;
}

}  // namespace

void add_check_command(CLI::App& app, Action& action, const std::string& command_line) {
  CLI::App* command = app.add_subcommand("check", "Check a folder of images before it is trusted");
  command->footer(
      "Finds files that are not read and why, copies of images (the same bytes, or resized, compressed\n"
      "again or cropped by about 2 %), the same picture in several classes or in several of train, val and\n"
      "test, and odd sizes and colors. Counts the images of each class. With --model also likely mislabels,\n"
      "where logistic regression on features of the other images disagrees, and outliers. Changes nothing.\n"
      "Example: tandem check photos --model scenes --html check.html --fix list.csv");
  auto flags = std::make_shared<Flags>();
  command->add_option("DATA", flags->data, "Folder of images, as for train")->required()->type_name("");
  command
      ->add_option(
          "--model,--pretrained", flags->options.model,
          fmt::format("Also find likely mislabels: {}, a run folder, or a file with a model or ResNet-18 "
                      "weights",
                      named_weights().choices()))
      ->type_name("MODEL");
  command->add_option("--html", flags->html, "Write a page with pictures")->type_name("FILE");
  add_json_flag(*command, flags->json, "JSON to a file, or instead of the text");
  command->add_option("--fix", flags->fix, "Write which files to move, as CSV; moves nothing")
      ->type_name("FILE");
  add_device_flag(*command, flags->device, "a GPU if there is one");
  command
      ->add_option("--image-size", flags->options.image_size,
                   "Resize images to N x N for the model; default: as it expects, for names 224")
      ->type_name("N")
      ->group(rare_group)
      ->check(whole_number_check(8, 4096));
  command
      ->add_flag("--no-sandbox", flags->no_sandbox,
                 "Decode images in this process, not in confined ones: for images of your own")
      ->group(rare_group);
  command->add_option("--max-pixels", flags->options.max_pixels, "Treat larger images as unreadable")
      ->type_name("N")
      ->capture_default_str()
      ->group(rare_group)
      ->check(whole_number_check(1, std::numeric_limits<std::int64_t>::max()));
  command->callback([flags, &action, command_line] {
    action = [flags, command_line] { return run(*flags, command_line); };
  });
}

}  // namespace tandem
