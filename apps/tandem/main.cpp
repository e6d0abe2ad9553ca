// The program `tandem`: selects the command and turns errors into one line and an exit status.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/tandem/advice.h"
#include "apps/tandem/command.h"
#include "apps/tandem/output.h"
#include "apps/tandem/version.h"
#include "tandem/core/check.h"
#include "tandem/data/loader/worker.h"
#include "tandem/text/message.h"
#include "tandem/text/utf8.h"

namespace {

// Prints the error as one line, whatever characters it contains.
int report_error(std::string_view text, int status) {
  tandem::print_message("tandem: error: {}\n", tandem::one_line(text));
  return status;
}

// "tandem study --help" if that command was selected, else "tandem --help".
std::string help_command(const CLI::App& app) {
  std::string command = app.get_name();
  for (const CLI::App* chosen : app.get_subcommands()) command += " " + chosen->get_name();
  return command + " --help";
}

// For an unknown command CLI11 only reports that one is required; name the known ones instead.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (!app.get_subcommands().empty() || dynamic_cast<const CLI::RequiredError*>(&error) == nullptr)
    return error.what();
  std::string known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    known += (known.empty() ? "" : ", ") + command->get_name();
  return fmt::format("expected one of the commands {}, got {}", known,
                     argc > 1 ? fmt::format("'{}'", argv[1]) : "none");
}

// Whether the word is a flag that only says where a run is written, and how many words belong to it.
int run_folder_words(int argc, char** argv, int i) {
  const std::string_view word = argv[i];
  for (const std::string_view flag : {"--out", "--resume", "--trace"}) {
    if (word.starts_with(std::string(flag) + "=")) return 1;
    if (word == flag) return i + 1 < argc && *argv[i + 1] != '-' ? 2 : 1;
  }
  return 0;
}

// The command line, quoted so that it can be pasted into a shell. Without the run folder, so that equal runs
// into different folders give equal model files.
std::string command_line(int argc, char** argv) {
  std::string line = "tandem";
  for (int i = 1; i < argc; ++i) {
    if (const int skipped = run_folder_words(argc, argv, i); skipped > 0) {
      i += skipped - 1;
      continue;
    }
    const std::string word = argv[i];
    const bool unquoted =
        !word.empty() && word.find_first_not_of(
                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "-_=,.:/+@%") == std::string::npos;
    line += " ";
    if (unquoted) {
      line += word;
      continue;
    }
    line += "'";
    for (const char c : word) line += c == '\'' ? "'\\''" : std::string(1, c);
    line += "'";
  }
  return line;
}

}  // namespace

int main(int argc, char** argv) {
  tandem::open_closed_streams();
  if (argc > 1 && std::string_view(argv[1]) == "worker") return tandem::run_worker({argv + 1, argv + argc});
  CLI::App app("Tandem: trains image classifiers on the CPU, on GPUs and on clusters.", "tandem");
  app.set_version_flag("--version", tandem::version_text());
  app.require_subcommand(1);
  app.footer("Example: tandem train mnist --epochs 15\nEvery command has its own --help.");
  tandem::Action action;
  tandem::add_augment_command(app, action);
  tandem::add_devices_command(app, action);
  tandem::add_eval_command(app, action);
  tandem::add_fetch_command(app, action);
  tandem::add_filter_command(app, action);
  tandem::add_inspect_command(app, action);
  tandem::add_plates_command(app, action);
  tandem::add_predict_command(app, action);
  tandem::add_split_command(app, action);
  tandem::add_study_command(app, action, command_line(argc, argv));
  tandem::add_train_command(app, action, command_line(argc, argv));
  tandem::add_verify_determinism_command(app, action);
  try {
    std::vector<std::string> words = tandem::with_json_targets({argv + 1, argv + argc});
    std::ranges::reverse(words);  // as CLI11 expects them
    app.parse(std::move(words));
    const int status = action();
    // A full disk is only detected when the buffer is flushed.
    const bool written = std::fflush(stdout) == 0 && !std::ferror(stdout);
    const int reason = errno;
    tandem::check(written, "cannot write to standard output: {}", std::strerror(reason));
    return status;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return report_error(fmt::format("{} (see {})", usage_error(app, error, argc, argv), help_command(app)),
                        2);
  } catch (const std::bad_alloc&) {
    return report_error("out of memory", 1);
  } catch (const std::exception& error) {
    return report_error(tandem::with_advice(error.what()), 1);
  }
}
