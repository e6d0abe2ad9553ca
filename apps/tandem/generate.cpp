// tandem generate: prints the man page, completion scripts and reference pages. Hidden, because it is for
// packages; everything comes from the parser's own table of flags.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "apps/tandem/command.h"
#include "apps/tandem/completion.h"
#include "apps/tandem/output.h"
#include "apps/tandem/reference.h"

namespace tandem {
namespace {

struct Flags {
  std::string what, command;
};

std::string generated(const CLI::App& app, const Flags& flags) {
  const std::vector<CommandRow> commands = command_rows(app);
  if (flags.what == "bash") return bash_completion(commands);
  if (flags.what == "zsh") return zsh_completion(commands);
  if (flags.what == "fish") return fish_completion(commands);
  if (flags.command.empty()) return flags.what == "man" ? man_page(commands) : markdown_index(commands);
  const auto found = std::ranges::find(commands, flags.command, &CommandRow::name);
  check(found != commands.end(), "[generate] expected a command, got '{}'", flags.command);
  return flags.what == "man" ? man_page(*found) : markdown_page(*found);
}

}  // namespace

void add_generate_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("generate", "Print the man page, completion or reference pages");
  command->group("");
  auto flags = std::make_shared<Flags>();
  command->add_option("WHAT", flags->what, "man, bash, zsh, fish or markdown")
      ->required()
      ->type_name("")
      ->check(usage_check([](const std::string& what) {
        check(what == "man" || what == "bash" || what == "zsh" || what == "fish" || what == "markdown",
              "expected man, bash, zsh, fish or markdown, got '{}'", what);
      }));
  command->add_option("COMMAND", flags->command, "man, markdown: the page of one command; default: of all")
      ->type_name("");
  command->callback([flags, &app, &action] {
    action = [flags, &app] {
      print_output("{}", generated(app, *flags));
      return 0;
    };
  });
}

}  // namespace tandem
