// tandem split: splits a folder of photographs for training and validation.
#include "tandem/data/split.h"
#include "tandem/text/message.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <string>

#include "apps/tandem/command.h"
#include "apps/tandem/output.h"

namespace tandem {
namespace {

struct Flags {
  std::string from, to, json;
  SplitOptions options;
};

int run(const Flags& flags) {
  check_output(flags.json, "split");
  const SplitCounts counts = split_folder(flags.from, flags.to, flags.options);
  const std::filesystem::path to = flags.to;
  if (!is_stdout(flags.json))
    print_output("{} {} images of {} class{}: {} for training in {}, {} for validation in {}.\n",
                 flags.options.link ? "Linked" : "Copied", counts.train + counts.val, counts.classes,
                 counts.classes == 1 ? "" : "es", counts.train, (to / "train").string(), counts.val,
                 (to / "val").string());
  if (!counts.skipped.empty())
    print_message("Not copied: {}; listed in {}\n", count_skipped(counts.skipped),
                  (to / "not-copied.csv").string());
  if (!flags.json.empty())
    write_output(flags.json,
                 result_json({{"classes", static_cast<std::int64_t>(counts.classes)},
                              {"train_images", static_cast<std::int64_t>(counts.train)},
                              {"train_folder", (to / "train").string()},
                              {"val_images", static_cast<std::int64_t>(counts.val)},
                              {"val_folder", (to / "val").string()},
                              {"not_copied", static_cast<std::int64_t>(counts.skipped.size())}}),
                 "split");
  return 0;
}

}  // namespace

void add_split_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("split", "Split photographs for training and validation");
  command->footer(
      "SRC has one folder of images per class. In each class, files 0, N, 2N, … (sorted by name) go to\n"
      "DST/val/CLASS, the others to DST/train/CLASS. SRC is not changed; DST must be new or empty.\n"
      "Example: tandem split photos photos-split --every 6");
  auto flags = std::make_shared<Flags>();
  command->add_option("SRC", flags->from, "Folder with one folder per class")->required()->type_name("");
  command->add_option("DST", flags->to, "Output folder, new or empty")->required()->type_name("");
  command->add_option("--every", flags->options.every, "Hold out every Nth file for validation")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number_check(2, std::numeric_limits<std::int32_t>::max()));
  command->add_flag("--link", flags->options.link, "Create symbolic links instead of copies");
  add_json_flag(*command, flags->json, "JSON to a file, or instead of the text");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
