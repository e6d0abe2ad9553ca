// The program `tandem`: selects the command and turns errors into one line and an exit status.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "apps/tandem/advice.h"
#include "apps/tandem/command.h"
#include "apps/tandem/common_flags.h"
#include "apps/tandem/help.h"
#include "apps/tandem/output.h"
#include "apps/tandem/usage.h"
#include "apps/tandem/version.h"
#include "tandem/core/check.h"
#include "tandem/core/simd.h"
#include "tandem/data/loader/worker.h"
#include "tandem/dist/launch.h"
#include "tandem/study/cluster_rank.h"
#include "tandem/study/plugin/plugin_host.h"
#include "tandem/text/message.h"
#include "tandem/text/shell_words.h"
#include "tandem/text/utf8.h"
#include "tandem/train/decoders/decode_host.h"
#include "tandem/train/failed_rank.h"

namespace {

// Prints the error as one line, whatever characters it contains.
int report_error(std::string_view text, int status) {
  tandem::restore_messages();
  tandem::print_message("tandem: error: {}\n", tandem::one_line(text));
  return status;
}

// Of the ranks of srun or mpirun, which all get the same words, the first reports.
int report_usage_error(const std::string& text) {
  try {
    const tandem::LaunchedRank launched = tandem::detect_launch(tandem::process_environment());
    const std::string own = tandem::end_with_error(launched, text);
    return own.empty() ? 2 : report_error(own, 2);
  } catch (const tandem::Error&) {  // the launcher's variables are wrong
    return report_error(text, 2);
  }
}

// Whether the word is a flag that only says where results are written or who computes them, and how many
// words belong to it.
int output_words(int argc, char** argv, int i) {
  const std::string_view word = argv[i];
  std::vector<std::string_view> flags{"--out", "-o", "--output-dir", "--resume", "--trace"};
  if (std::string_view(argv[1]) == "train")
    flags.insert(flags.end(), {"--ranks", "--rank-limit", "--until", "--comm", "--accumulate"});
  for (const std::string_view flag : flags) {
    if (word.starts_with(std::string(flag) + "=")) return 1;
    if (word == flag) return i + 1 < argc && *argv[i + 1] != '-' ? 2 : 1;
  }
  return 0;
}

// The command line, quoted so that it can be pasted into a shell. Without the run folder and the
// ranks, so that equal runs give equal model files.
std::string command_line(int argc, char** argv) {
  std::vector<std::string> words{"tandem"};
  for (int i = 1; i < argc; ++i) {
    const int skipped = output_words(argc, argv, i);
    if (skipped == 0) words.emplace_back(argv[i]);
    i += std::max(0, skipped - 1);
  }
  return tandem::shell_words(words);
}

// As the first of the ranks, if there are several. The words need no memory.
int report_out_of_memory() {
  if (std::getenv(tandem::worker_marker)) {  // the loader replaces a worker: no error of the run
    tandem::write_message("worker: out of memory\n");
    return 1;
  }
  bool is_quiet = false;
  try {
    const tandem::LaunchedRank launched = tandem::detect_launch(tandem::process_environment());
    is_quiet = tandem::end_with_error(launched, "out of memory").empty();
  } catch (const std::exception&) {
  }
  tandem::restore_messages();
  if (!is_quiet) tandem::write_message("tandem: error: out of memory\n");
  return 1;
}

// For a failed allocation where no exception may pass, such as in a destructor. Files are written beside
// their target, so that nothing is lost.
[[noreturn]] void on_terminate() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    std::_Exit(report_out_of_memory());
  } catch (...) {
  }
  std::abort();
}

int run(int argc, char** argv) {
  if (const auto status = tandem::run_plugin_if_asked(argc, argv)) return *status;
  if (const auto status = tandem::run_decoder_if_asked(argc, argv)) return *status;
  if (argc > 1 && std::string_view(argv[1]) == "worker") {
    tandem::confine_decoders_of_worker();
    return tandem::run_worker({argv + 1, argv + argc});
  }
  if (argc > 1 && std::string_view(argv[1]) == "cluster-rank")
    return tandem::run_cluster_rank({argv + 1, argv + argc});
  CLI::App app("Tandem: trains image classifiers on the CPU, on GPUs and on clusters.", "tandem");
  app.set_version_flag("--version", tandem::version_text());
  app.require_subcommand(1);
  app.footer(
      "Every command has its own --help, and --help-all with every flag and default.\n"
      "Example: tandem train mnist --epochs 15");
  tandem::set_help(app);
  tandem::Action action;
  std::vector<std::string> words =
      tandem::with_freeze_values(tandem::with_json_targets({argv + std::min(argc, 1), argv + argc}));
  const std::vector<std::string> training = tandem::cut_training(words);
  tandem::add_augment_command(app, action);
  tandem::add_check_command(app, action, command_line(argc, argv));
  tandem::add_compare_command(app, action, command_line(argc, argv));
  tandem::add_convert_command(app, action);
  tandem::add_devices_command(app, action);
  tandem::add_eval_command(app, action);
  tandem::add_explain_command(app, action, command_line(argc, argv));
  tandem::add_export_command(app, action);
  tandem::add_fetch_command(app, action);
  tandem::add_filter_command(app, action);
  tandem::add_grade_command(app, action, command_line(argc, argv));
  tandem::add_inspect_command(app, action);
  tandem::add_new_command(app, action);
  tandem::add_pack_command(app, action);
  tandem::add_plates_command(app, action);
  tandem::add_predict_command(app, action);
  tandem::add_pretrain_command(app, action, command_line(argc, argv));
  tandem::add_probe_command(app, action);
  tandem::add_quantize_command(app, action, command_line(argc, argv));
  tandem::add_serve_command(app, action);
  tandem::add_split_command(app, action);
  tandem::add_study_command(app, action, command_line(argc, argv));
  tandem::add_submit_command(app, action, training);
  tandem::add_train_command(app, action, command_line(argc, argv));
  tandem::add_verify_determinism_command(app, action);
  tandem::add_watch_command(app, action);
  tandem::add_generate_command(app, action);
  tandem::add_common_flags(app);
  if (!words.empty() && words[0] == "help") {  // `tandem help train` is `tandem train --help`
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes the words from the end
    tandem::simd_level();  // a wrong TANDEM_SIMD is an error of every command
    const int status = action();
    if (status > 128) return status;  // stopped by a signal, and said so
    // A full disk is only detected when the buffer is flushed.
    const bool written = std::fflush(stdout) == 0 && !std::ferror(stdout);
    const int reason = errno;
    tandem::check(written, "cannot write to standard output: {}", std::strerror(reason));
    return status;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return report_usage_error(tandem::usage_error(app, error, words));
  }
}

}  // namespace

int main(int argc, char** argv) {
  tandem::open_closed_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file over the limit (ulimit -f) is an error of one line
  std::set_terminate(on_terminate);
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    return report_out_of_memory();
  } catch (const std::exception& error) {
    try {
      return report_error(tandem::with_advice(error.what()), 1);
    } catch (const std::bad_alloc&) {
      return report_out_of_memory();
    }
  }
}
