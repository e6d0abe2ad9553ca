// tandem plates: renders the synthetic photographs of cleaned and dirty plates to files.
#include "tandem/data/synthetic/plates.h"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <string>

#include "apps/tandem/command.h"
#include "apps/tandem/output.h"
#include "tandem/train/progress.h"

namespace tandem {
namespace {

struct Flags {
  std::string folder, json;
  PlatesOptions options;
};

int run(const Flags& flags) {
  check_output(flags.json, "plates");
  Progress progress;
  const RenderObserver rendering = observe_rendering(progress);
  write_plates(flags.folder, flags.options);
  progress.clear();
  if (!is_stdout(flags.json))
    print_output("Rendered {} + {} training plates and {} test plates in {}.\n", flags.options.train,
                 flags.options.train, flags.options.test, flags.folder);
  if (!flags.json.empty())
    write_output(flags.json,
                 result_json({{"folder", flags.folder},
                              {"train_images", 2 * flags.options.train},
                              {"test_images", flags.options.test}}),
                 "plates");
  return 0;
}

}  // namespace

void add_plates_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("plates", "Render photographs of cleaned and dirty plates");
  command->footer(
      "Writes PNG files to DIR/train/cleaned, DIR/train/dirty, DIR/test/cleaned and DIR/test/dirty.\n"
      "The same seed gives the same images on every machine; test images do not depend on --train.\n"
      "Example: tandem plates photos --test 100 && tandem train photos --model resnet18");
  auto flags = std::make_shared<Flags>();
  constexpr std::int64_t max_plates = 10'000'000;
  command->add_option("DIR", flags->folder, "Output folder, new or empty")->required()->type_name("");
  command->add_option("--train", flags->options.train, "Training plates per class")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number_check(0, max_plates));
  command->add_option("--test", flags->options.test, "Test plates")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number_check(0, max_plates));
  command->add_option("--seed", flags->options.seed, "Random seed")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number_check(0, std::numeric_limits<std::int64_t>::max()));
  command->add_option("--size", flags->options.size, "Side of an image in pixels")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number_check(8, 4096));
  add_json_flag(*command, flags->json, "JSON to a file, or instead of the text");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
