// tandem compare: training runs, or the files of studies, side by side.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/tandem/command.h"
#include "apps/tandem/output.h"
#include "apps/tandem/terminal.h"
#include "tandem/core/write_file.h"
#include "tandem/files/read_file.h"
#include "tandem/report/comparison.h"
#include "tandem/report/json.h"
#include "tandem/report/provenance.h"
#include "tandem/study/study_comparison.h"
#include "tandem/text/message.h"
#include "tandem/train/read_run.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

struct Flags {
  std::vector<std::string> compared;
  std::string html, json;
};

// A run is a folder, a study is a file.
bool is_run(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  check(fs::exists(status), "[compare] {}: no such run folder or study file", path);
  return fs::is_directory(status);
}

void write(const Flags& flags, const auto& compared, auto text_of, auto page_of, auto json_of,
           const std::vector<Fact>& made) {
  if (!is_stdout(flags.json) && !is_stdout(flags.html))
    print_output("{}", text_of(compared, terminal_style(stdout)));
  if (!flags.html.empty()) {
    write_output(flags.html, page_of(compared, made), "compare");
    if (!is_stdout(flags.html)) print_message("Wrote {}\n", flags.html);
  }
  if (!flags.json.empty()) write_output(flags.json, json_of(compared, made), "compare");
}

int run(const Flags& flags, const std::string& command_line) {
  check_output(flags.html, "compare");
  check_output(flags.json, "compare");
  const bool runs = is_run(flags.compared[0]);
  for (const std::string& path : flags.compared)
    check(is_run(path) == runs, "[compare] expected run folders or files of studies, got both: {} and {}",
          flags.compared[0], path);
  std::vector<Fact> made = provenance(command_line, 0);
  std::erase_if(made, [](const Fact& fact) { return fact.name == "seed"; });
  if (runs) {
    std::vector<ComparedRun> compared;
    for (const std::string& path : flags.compared) compared.push_back(read_run(path));
    write(flags, compared, comparison_text, comparison_page, comparison_json, made);
  } else {
    constexpr std::uint64_t max_bytes = 1 << 30;
    std::vector<ComparedStudies> compared;
    for (const std::string& path : flags.compared)
      compared.push_back({path, parse_studies(read_file("compare", path, max_bytes), path)});
    write(flags, compared, study_comparison_text, study_comparison_page, study_comparison_json, made);
  }
  return 0;
}

}  // namespace

void add_compare_command(CLI::App& app, Action& action, const std::string& command_line) {
  CLI::App* command = app.add_subcommand("compare", "Show training runs, or studies, side by side");
  command->footer(
      "Runs: the options that differ, accuracies with their intervals, times, and the accuracy after each\n"
      "epoch. Studies: the median times that the files share, and the speed relative to the first file.\n"
      "Nothing is called faster or better where the spreads or the intervals overlap.\n"
      "Examples: tandem compare runs/mnist-mlp-1 runs/mnist-mlp-2 --html compared.html\n"
      "          tandem compare before.json after.json");
  auto flags = std::make_shared<Flags>();
  command
      ->add_option("RUN", flags->compared,
                   fmt::format("Run folders of `tandem train`, or files of `tandem study --json`: 2 to {}",
                               max_compared))
      ->required()
      ->expected(2, static_cast<int>(max_compared))
      ->type_name("");
  auto* html =
      command
          ->add_option("--html", flags->html, "Also write a page with curves and all epochs, works offline")
          ->type_name("FILE");
  auto* json = add_json_flag(*command, flags->json, "JSON to a file, or instead of the tables");
  command->callback([flags, html, json, &action, command_line] {
    if (is_stdout(flags->json) && is_stdout(flags->html))
      throw CLI::ExcludesError(json->get_name() + " -", html->get_name() + " -");
    action = [flags, command_line] { return run(*flags, command_line); };
  });
}

}  // namespace tandem
