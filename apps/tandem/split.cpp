// tandem split: splits a folder of photographs for training and validation.
#include "tandem/data/split.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <string>

#include "apps/tandem/command.h"

namespace tandem {
namespace {

struct Flags {
  std::string from, to;
  SplitOptions options;
};

int run(const Flags& flags) {
  const SplitCounts counts = split_folder(flags.from, flags.to, flags.options);
  const std::filesystem::path to = flags.to;
  fmt::print("{} {} images of {} class{}: {} for training in {}, {} for validation in {}.\n",
             flags.options.link ? "Linked" : "Copied", counts.train + counts.val, counts.classes,
             counts.classes == 1 ? "" : "es", counts.train, (to / "train").string(), counts.val,
             (to / "val").string());
  if (!counts.skipped.empty())
    fmt::print(stderr, "Not copied: {}; listed in {}\n", count_skipped(counts.skipped),
               (to / "not-copied.csv").string());
  return 0;
}

}  // namespace

void add_split_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("split", "Split a folder of photographs for training and validation");
  command->footer(
      "SRC has one folder of images per class. In each class, files 0, N, 2N, … (sorted by name) go to\n"
      "DST/val/CLASS, the others to DST/train/CLASS. SRC is not changed; DST must be new or empty.\n"
      "Example: tandem split photos photos-split --every 6");
  auto flags = std::make_shared<Flags>();
  command->add_option("SRC", flags->from, "Folder with one folder per class")->required()->type_name("");
  command->add_option("DST", flags->to, "Output folder, new or empty")->required()->type_name("");
  command->add_option("--every", flags->options.every, "Hold out every Nth file for validation, 6 by default")
      ->type_name("N")
      ->check(whole_number_check(2, std::numeric_limits<std::int32_t>::max()));
  command->add_flag("--link", flags->options.link, "Create symbolic links instead of copies");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
