// tandem watch: training runs, live, from their folders.
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "apps/tandem/command.h"
#include "apps/tandem/terminal.h"
#include "tandem/train/watch/watch.h"

namespace tandem {
namespace {

struct Flags {
  WatchOptions options{.paths = {"runs"}};
  bool plain = false, once = false;
};

// A terminal that can place its cursor.
bool is_screen() {
  const char* const terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && terminal != nullptr && *terminal != '\0' &&
         std::string_view(terminal) != "dumb";
}

int run(Flags& flags) {
  WatchOptions& options = flags.options;
  options.style = {.color = is_screen() && terminal_style(stdout).color, .utf8 = is_utf8_locale()};
  if (flags.once) {
    watch_once(options);
  } else if (flags.plain || !is_screen()) {
    options.max_runs = 1;
    watch_as_lines(options);
  } else if (const int signal = watch_on_terminal(options); signal != 0) {
    return 128 + signal;
  }
  return 0;
}

}  // namespace

void add_watch_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("watch", "Show training runs live, from their folders");
  command->footer(
      "Curves of loss and accuracy, progress, images/s, time spent waiting for images, memory, the best "
      "epoch\n"
      "and the last warnings, of runs that go on and of runs that have ended. Reads the folders and writes\n"
      "nothing: works over ssh, and as often as wanted. Keys: q quits, tab shows the next run, ? explains.\n"
      "Where the output is not a terminal, a line per epoch until the run ends.\n"
      "Examples: tandem watch                      the newest runs below runs/\n"
      "          tandem watch runs/a runs/b\n"
      "          tandem watch --plain runs/a | tee progress.txt");
  auto flags = std::make_shared<Flags>();
  command
      ->add_option("RUN", flags->options.paths,
                   "Run folders of `tandem train`, or folders with runs, of which the newest are shown")
      ->type_name("")
      ->default_str("runs");
  CLI::Option* const plain = command->add_flag(
      "--plain", flags->plain, "A line per epoch until the run ends; of a folder with runs, the newest one");
  command->add_flag("--once", flags->once, "Print the screen once")->excludes(plain);
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
