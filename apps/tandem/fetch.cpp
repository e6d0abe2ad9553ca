// tandem fetch: downloads a data set or pretrained weights into the cache.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "apps/tandem/command.h"
#include "apps/tandem/output.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/text/message.h"

namespace tandem {
namespace {

struct Flags {
  std::string data_set, from, json;
};

int run(const Flags& flags) {
  FetchOptions options{.from = flags.from};
  options.on_message = [](const std::string& line) { print_message("{}\n", line); };
  if (isatty(STDERR_FILENO) == 1)
    options.on_progress = [](const std::string& what, std::uint64_t done, std::uint64_t total) {
      if (total == 0) return;
      print_message("\r{} {:5.1f} of {:.1f} MB{}", what, static_cast<double>(done) / 1e6,
                    static_cast<double>(total) / 1e6, done == total ? "\n" : "");
    };
  check_output(flags.json, "fetch");
  const std::string path = fetch_dataset(flags.data_set, options).string();
  if (!is_stdout(flags.json)) print_output("{}\n", path);
  if (!flags.json.empty())
    write_output(flags.json, result_json({{"name", flags.data_set}, {"path", path}}), "fetch");
  return 0;
}

}  // namespace

void add_fetch_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("fetch", "Download a data set or pretrained weights");
  command->footer(
      "Examples: tandem fetch mnist\n"
      "          tandem fetch fashion-mnist --from downloads/\n"
      "          tandem fetch resnet18 --from resnet18-f37072fd.pth\n"
      "The cache is $TANDEM_CACHE, else $XDG_CACHE_HOME/tandem, else ~/.cache/tandem.");
  auto flags = std::make_shared<Flags>();
  command->add_option("DATA", flags->data_set, fetchable_names())
      ->required()
      ->type_name("")
      ->check(usage_check([](const std::string& name) { fetch_source(name); }));
  command
      ->add_option("--from", flags->from,
                   "Folder with the files (raw or gz), archive (.tgz, .deb) or one file")
      ->type_name("PATH");
  add_json_flag(*command, flags->json, "JSON to a file, or instead of the path");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
