// tandem watch: training runs, live, from their folders.
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "apps/tandem/command.h"
#include "apps/tandem/http_site.h"
#include "apps/tandem/terminal.h"
#include "tandem/serve/run_service.h"
#include "tandem/train/watch/watch.h"

namespace tandem {
namespace {

struct Flags {
  WatchOptions options{.paths = {"runs"}};
  bool plain = false, once = false, as_page = false;
  HttpFlags http{.listen = "127.0.0.1:8081"};
};

// "8081" is a port of this machine.
std::string with_host(const std::string& address) {
  return address.find_first_not_of("0123456789") == std::string::npos ? "127.0.0.1:" + address : address;
}

int serve_page(const Flags& flags) {
  HttpSite site(flags.http);
  RunService service(flags.options.paths);
  site.run(service.routes(), [&](HttpServer&) { service.start(); });
  return 0;
}

// A terminal that can place its cursor.
bool is_screen() {
  const char* const terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && terminal != nullptr && *terminal != '\0' &&
         std::string_view(terminal) != "dumb";
}

int run(Flags& flags) {
  if (flags.as_page) return serve_page(flags);
  WatchOptions& options = flags.options;
  options.style = {.color = is_screen() && terminal_style(stdout).color, .utf8 = is_utf8_locale()};
  if (flags.once) {
    watch_once(options);
  } else if (flags.plain || !is_screen()) {
    options.max_runs = 1;
    return watch_as_lines(options) ? 0 : 1;
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
      "Where the output is not a terminal, a line per epoch until the run ends; the exit status is 1 unless "
      "it\n"
      "has finished.\n"
      "Examples: tandem watch                      the newest runs below runs/\n"
      "          tandem watch runs/a runs/b\n"
      "          tandem watch --plain runs/a | tee progress.txt\n"
      "          tandem watch runs --http          as a page");
  auto flags = std::make_shared<Flags>();
  command
      ->add_option("RUN", flags->options.paths,
                   "Run folders of `tandem train`, or folders with runs, of which the newest are shown")
      ->type_name("")
      ->default_str("runs");
  CLI::Option* const plain = command->add_flag(
      "--plain", flags->plain, "A line per epoch until the run ends; of a folder with runs, the newest one");
  CLI::Option* const once =
      command->add_flag("--once", flags->once, "Print the screen once")->excludes(plain);
  CLI::Option* const page = command
                                ->add_option_function<std::string>(
                                    "--http",
                                    [flags](const std::string& text) {
                                      flags->as_page = true;
                                      if (!text.empty()) flags->http.listen = with_host(text);
                                    },
                                    "Show the runs as a page in a browser: PORT, ADDRESS:PORT or unix:PATH "
                                    "(default: 127.0.0.1:8081)")
                                ->type_name("[ADDRESS]")
                                ->expected(0, 1)
                                ->check(usage_check([](const std::string& text) {
                                  if (!text.empty()) parse_listen_address(with_host(text));
                                }))
                                ->excludes(plain)
                                ->excludes(once);
  add_access_flags(*command, flags->http, page);
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
