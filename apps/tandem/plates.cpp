// tandem plates: writes the built-in photographs, so that the whole way from files to predictions can be
// tried.
#include "tandem/data/plates.h"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <string>

#include "apps/tandem/command.h"

namespace tandem {
namespace {

struct Flags {
  std::string to;
  PlatesOptions options;
};

int run(const Flags& flags) {
  write_plates(flags.to, flags.options);
  const PlatesOptions& options = flags.options;
  fmt::print("Drew {} clean and {} dirty plates in {}/train and {} of both kinds in {}/test.\n",
             options.train, options.train, flags.to, options.test, flags.to);
  return 0;
}

}  // namespace

void add_plates_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("plates", "Draw photographs of clean and dirty plates into a folder");
  command->footer(
      "DST gets train/clean, train/dirty, test/clean and test/dirty with PNG files; it must be new or "
      "empty.\n"
      "Example: tandem plates photos --test 100 && tandem train photos");
  auto flags = std::make_shared<Flags>();
  constexpr std::int64_t most = 1'000'000;
  command->add_option("DST", flags->to, "The folder to make")->required()->type_name("");
  command->add_option("--train", flags->options.train, "Training plates of each kind, 20 by default")
      ->type_name("N")
      ->check(whole_number_check(0, most));
  command->add_option("--test", flags->options.test, "Test plates in all, 500 by default")
      ->type_name("N")
      ->check(whole_number_check(0, most));
  command->add_option("--size", flags->options.size, "Pixels a side, 480 by default")
      ->type_name("N")
      ->check(whole_number_check(8, 4096));
  command->add_option("--seed", flags->options.seed, "Of the drawings, 1 by default")
      ->type_name("N")
      ->check(whole_number_check(0, std::numeric_limits<std::int64_t>::max()));
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
