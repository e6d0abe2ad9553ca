// tandem verify-determinism: checks on the user's data that batches do not depend on the number or kind of
// workers, and that a trained model does not depend on the number of ranks.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "apps/tandem/advice.h"
#include "apps/tandem/command.h"
#include "apps/tandem/output.h"
#include "apps/tandem/status_line.h"
#include "apps/tandem/terminal.h"
#include "apps/tandem/with_plugins.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/data/loader/loader.h"
#include "tandem/dist/local_segment.h"
#include "tandem/study/determinism.h"
#include "tandem/text/format_number.h"
#include "tandem/text/message.h"
#include "tandem/train/batch_sheet.h"
#include "tandem/train/photo_data.h"
#include "tandem/train/progress.h"
#include "tandem/train/training_data.h"

namespace tandem {
namespace {

struct Flags {
  TrainOptions train;  // only the data set, its limit and its transform are used
  std::string recipe;  // empty: the default recipe of the data
  std::string json, plugins;
  DeterminismOptions options;
  std::vector<int> ranks;   // empty: not compared
  std::int64_t shards = 0;  // 0: the largest number of ranks
};

constexpr std::int64_t trained_steps = 8;

// What training on ranks needs. Small images, so that a run takes seconds.
RankRunOptions rank_options(const Flags& flags, const TrainingData& data) {
  const std::int64_t batch = flags.options.batch_size;
  const int most = std::ranges::max(flags.ranks);
  RankRunOptions options{.ranks = flags.ranks,
                         .shards = flags.shards > 0 ? flags.shards : most,
                         .arguments = {flags.train.data, "--epochs", "1", "--device", "cpu", "--workers", "0",
                                       "--pretrained", "none"}};
  check(most <= batch, "[verify-determinism] expected at most {} ranks, one per image of a batch, got {}",
        batch, most);
  check(most <= options.shards, "[verify-determinism] expected at most {} ranks, one per shard, got {}",
        options.shards, most);
  const auto add = [&](const std::string& flag, const std::string& value) {
    options.arguments.insert(options.arguments.end(), {flag, value});
  };
  // A part of the images is held out for validation.
  const std::int64_t limit =
      std::min(trained_steps * batch, std::max<std::int64_t>(1, data.train.count() / 2));
  add("--limit", std::to_string(limit));
  add("--batch-size", std::to_string(batch));
  add("--seed", std::to_string(flags.options.seed));
  if (!flags.train.from.empty()) add("--from", flags.train.from);
  if (!flags.recipe.empty()) add("--augment", flags.recipe);
  if (!flags.plugins.empty()) add("--with", flags.plugins);
  if (is_photo_data(flags.train.data)) add("--image-size", "64");
  return options;
}

int run(const Flags& flags) {
  check_output(flags.json, "verify-determinism");
  tell_named_data(flags.train.data);
  DeterminismOptions options = flags.options;
  options.on_message = [](const std::string& line) { print_message("{}\n", line); };
  TrainOptions train = with_recipe(flags.train, flags.recipe);
  train.validation = 0;  // all images
  options.transform = train.transform;
  Progress progress;
  const RenderObserver rendering = observe_rendering(progress);
  const TrainingData data = load_training_data(train, options.on_message);
  progress.clear();
  RankRunOptions training;
  if (!flags.ranks.empty()) training = rank_options(flags, data);
  const BatchPlan plan{.samples = data.train.count(), .batch_size = options.batch_size};
  if (!is_stdout(flags.json))
    print_output("{}: {} images, {}; recipe {}; batches of {}, seed {}\n\n", data.name,
                 format_count(data.train.count()), image_description(data.train), train.transform.to_string(),
                 options.batch_size, options.seed);
  std::fflush(stdout);
  const std::vector<DeterminismRow> rows = verify_determinism(*data.train.dataset, options);
  if (!is_stdout(flags.json))
    print_output("{}", determinism_text(rows, plan.steps(), terminal_style(stdout)));
  std::fflush(stdout);
  std::vector<RankRow> rank_rows;
  if (!flags.ranks.empty()) {
    StatusLine line;
    training.on_progress = [&](const std::string& what) { line.show(what); };
    rank_rows = verify_ranks(training);
  }
  if (!rank_rows.empty() && !is_stdout(flags.json))
    print_output("\n{}",
                 rank_determinism_text(
                     rank_rows, fmt::format("batches of {}, {} shards", options.batch_size, training.shards),
                     terminal_style(stdout)));
  if (!flags.json.empty())
    write_output(flags.json, determinism_json(rows, plan.steps(), rank_rows), "verify-determinism");
  return is_deterministic(rows) && is_deterministic(rank_rows) ? 0 : 1;
}

}  // namespace

void add_verify_determinism_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("verify-determinism", "Check that workers and ranks do not change the bits");
  command->footer(
      "Compares the SHA-256 of every batch (pixels, labels, sample indices) of one epoch and of the\n"
      "beginning of the next; images/s includes the hashing. With --ranks also trains a few steps on each\n"
      "number of ranks and compares the models. The exit status is 1 if any differs.\n"
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
  add_with_flag(*command, "An operation of your own for the recipe: FILE.so, .c or .cpp",
                [flags](const std::string& files) { flags->plugins = files; });
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
  command->add_option("--ranks", flags->ranks, "Also train on so many ranks, such as 1,2,3,4")
      ->type_name("COUNTS")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number_check(1, LocalSegment::max_ranks));
  command->add_option("--shards", flags->shards, "Shards of every batch on ranks")
      ->type_name("N")
      ->default_str("the most ranks")
      ->check(whole_number_check(1, 1 << 20));
  add_json_flag(*command, flags->json, "JSON to a file, or instead of the table");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
