// The program `tandem`: picks the command, turns errors into one line and an exit status.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "apps/tandem/command.h"

int main(int argc, char** argv) {
  CLI::App app("Tandem: trains image classifiers on the CPU, on GPUs and on clusters.", "tandem");
  app.set_version_flag("--version", "tandem " TANDEM_VERSION);
  app.require_subcommand(1);
  app.footer("Example: tandem study all --quick --html report.html\nEvery command has its own --help.");
  tandem::Action action;
  tandem::add_devices_command(app, action);
  tandem::add_filter_command(app, action);
  tandem::add_study_command(app, action);
  try {
    app.parse(argc, argv);
    return action();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "tandem: error: {} (see tandem --help)\n", error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "tandem: error: out of memory\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "tandem: error: {}\n", error.what());
  }
  return 1;
}
