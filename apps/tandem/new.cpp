// tandem new: writes a small project for a kernel, augmentation or model of the user.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>

#include "apps/tandem/command.h"
#include "apps/tandem/flag_table.h"
#include "apps/tandem/output.h"
#include "tandem/study/plugin/new_project.h"
#include "tandem/text/message.h"

namespace tandem {
namespace {

struct Flags {
  std::string kind, name;
};

int run(const Flags& flags) {
  const ProjectKind& kind = project_kinds().get(flags.kind);
  for (const auto& path : write_project(kind, flags.name)) print_output("{}\n", path.string());
  print_message("Try it: cd {} && {}\n", flags.name, project_commands(kind, flags.name).front());
  return 0;
}

}  // namespace

void add_new_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("new", "Write a project for a kernel, augmentation or model of your own");
  std::string list = "Kinds:\n";
  for (const ProjectKind& kind : project_kinds().rows())
    list += fmt::format("  {:<14} {} ({})\n", kind.name, kind.summary, kind.language);
  command->footer(list + "Example: tandem new kernel mine && tandem study max --quick --with mine/mine.cpp");
  auto flags = std::make_shared<Flags>();
  command->add_option("KIND", flags->kind, "What to write; see below")
      ->required()
      ->type_name("")
      ->check(usage_check([](const std::string& name) { project_kinds().get(name); }));
  command->add_option("NAME", flags->name, "Its name: a new folder, of letters, digits and _")
      ->required()
      ->type_name("");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
