// tandem split: a folder of photographs into one for training and one for validation.
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
  return 0;
}

}  // namespace

void add_split_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("split", "Split a folder of photographs for training and validation");
  command->footer(
      "SRC has a folder of images for each class. Of each class's files, sorted by name, numbers 0, N, 2N …\n"
      "go to DST/val/CLASS, the others to DST/train/CLASS. SRC stays as it is; DST must be new or empty.\n"
      "Example: tandem split photos photos-split --every 6");
  auto flags = std::make_shared<Flags>();
  command->add_option("SRC", flags->from, "The folder with a folder for each class")
      ->required()
      ->type_name("");
  command->add_option("DST", flags->to, "The folder to make")->required()->type_name("");
  command->add_option("--every", flags->options.every, "Take every Nth file for validation, 6 by default")
      ->type_name("N")
      ->check(whole_number_check(2, std::numeric_limits<std::int32_t>::max()));
  command->add_flag("--link", flags->options.link, "Make symbolic links instead of copies");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
