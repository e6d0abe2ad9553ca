// tandem verify-determinism: checks on the user's data that batches do not depend on the number or kind of
// workers.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <string>

#include "apps/tandem/command.h"
#include "apps/tandem/output.h"
#include "apps/tandem/terminal.h"
#include "apps/tandem/with_plugins.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/data/loader/loader.h"
#include "tandem/study/determinism.h"
#include "tandem/text/format_number.h"
#include "tandem/text/message.h"
#include "tandem/train/batch_sheet.h"
#include "tandem/train/progress.h"
#include "tandem/train/training_data.h"

namespace tandem {
namespace {

struct Flags {
  TrainOptions train;  // only the data set, its limit and its transform are used
  std::string recipe;  // empty: the default recipe of the data
  std::string json;
  DeterminismOptions options;
};

int run(const Flags& flags) {
  check_output(flags.json, "verify-determinism");
  DeterminismOptions options = flags.options;
  options.on_message = [](const std::string& line) { print_message("{}\n", line); };
  TrainOptions train = with_recipe(flags.train, flags.recipe);
  train.validation = 0;  // all images
  options.transform = train.transform;
  Progress progress;
  const RenderObserver rendering = observe_rendering(progress);
  const TrainingData data = load_training_data(train, options.on_message);
  progress.clear();
  const BatchPlan plan{.samples = data.train.count(), .batch_size = options.batch_size};
  if (!is_stdout(flags.json))
    fmt::print("{}: {} images, {}; recipe {}; batches of {}, seed {}\n\n", data.name,
               format_count(data.train.count()), image_description(data.train), train.transform.to_string(),
               options.batch_size, options.seed);
  std::fflush(stdout);
  const std::vector<DeterminismRow> rows = verify_determinism(*data.train.dataset, options);
  if (!is_stdout(flags.json)) fmt::print("{}", determinism_text(rows, plan.steps(), terminal_style(stdout)));
  if (!flags.json.empty())
    write_output(flags.json, determinism_json(rows, plan.steps()), "verify-determinism");
  return is_deterministic(rows) ? 0 : 1;
}

}  // namespace

void add_verify_determinism_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("verify-determinism", "Check that workers do not change the batches");
  command->footer(
      "Compares the SHA-256 of every batch (pixels, labels, sample indices) of one epoch and of the\n"
      "beginning of the next; images/s includes the hashing. The exit status is 1 if any differs.\n"
      "Example: tandem verify-determinism mnist --workers 8");
  auto flags = std::make_shared<Flags>();
  flags->options.workers = default_worker_count();
  command->add_option("DATA", flags->train.data, datasets().list() + " or a folder")
      ->required()
      ->type_name("");
  command->add_option("--from", flags->train.from, "Folder or archive that contains the data set")
      ->type_name("PATH");
  command
      ->add_option("--augment", flags->recipe,
                   "digits or photo by default; none, or a recipe, as \"rotate -12 12\"")
      ->type_name("RECIPE")
      ->check(usage_check([](const std::string& text) { Transform::parse(text); }));
  add_with_flag(*command, "An operation of your own for the recipe: FILE.so, .c or .cpp");
  command->add_option("--limit", flags->train.limit, "Use only the first N training images")
      ->type_name("N")
      ->check(whole_number_check(1, std::numeric_limits<std::int32_t>::max()));
  command->add_option("--batch-size,-b", flags->options.batch_size, "Batch size")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number_check(1, 1 << 20));
  command->add_option("--workers,-j,--num-workers", flags->options.workers, "Maximum number of workers")
      ->default_str("the CPUs of this process")
      ->type_name("N")
      ->check(whole_number_check(1, 1024));
  command->add_option("--seed", flags->options.seed, "Random seed")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number_check(0, std::numeric_limits<std::int64_t>::max()));
  add_json_flag(*command, flags->json, "JSON to a file, or instead of the table");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
