// tandem probe: measures how good the features of models are.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/tandem/advice.h"
#include "apps/tandem/command.h"
#include "apps/tandem/flag_table.h"
#include "apps/tandem/output.h"
#include "apps/tandem/terminal.h"
#include "apps/tandem/with_plugins.h"
#include "tandem/core/clock.h"
#include "tandem/nn/model_registry.h"
#include "tandem/study/probe/probe.h"
#include "tandem/study/probe/probe_features.h"
#include "tandem/text/format_number.h"
#include "tandem/text/message.h"
#include "tandem/train/progress.h"

namespace tandem {
namespace {

struct Flags {
  ProbeOptions options;
  std::string json, device = "auto";
};

int run(const Flags& flags) {
  check_output(flags.json, "probe");
  ProbeOptions options = flags.options;
  options.device = flags.device == "auto" ? default_device() : parse_device(flags.device);
  Progress progress;
  const Stopwatch watch;
  options.on_message = [](const std::string& line) { print_message("{}\n", line); };
  options.on_progress = [&](const std::string&, std::int64_t done, std::int64_t images) {
    progress.update({.phase = "Features", .position = done, .total = images});
  };
  tell_named_data(options.data);
  const ProbeReport report = probe(options);
  progress.clear();
  print_message("{} on {}\n", format_duration(watch.elapsed_ms() / 1000), options.device.to_string());
  if (!is_stdout(flags.json)) print_output("{}", probe_text(report, terminal_style(stdout)));
  if (!flags.json.empty()) write_output(flags.json, probe_json(report), "probe");
  return 0;
}

// MODEL takes all words and passes the last one on to DATA: the parser would give every word to the list.
void add_positionals(CLI::App& command, ProbeOptions& options) {
  constexpr int max_models = 16;
  command
      .add_option_function<std::vector<std::string>>(
          "MODEL",
          [&command, &options](std::vector<std::string> words) {
            if (words.size() > 1) {
              command.get_option("DATA")->add_result(words.back());
              words.pop_back();
            }
            options.models = std::move(words);
          },
          fmt::format("Run folders, model files, files of weights, or {}", named_weights().choices()))
      ->required()
      ->expected(1, max_models + 1)
      ->type_name("");
  command.add_option("DATA", options.data, "Labeled images, as for train")->required()->type_name("");
}

void add_measurement_flags(CLI::App& command, ProbeOptions& options) {
  constexpr std::int64_t max_images = 1000000, max_draws = 1000;
  command.add_option("--per-class", options.per_class, "Labeled images per class, such as 10,50")
      ->type_name("COUNTS")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("10")
      ->check(whole_number_check(1, max_images));
  command.add_option("--draws", options.draws, "Random choices of the labeled images")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number_check(1, max_draws));
  command.add_option("--limit", options.limit, "Test images, evenly spaced; default: all")
      ->type_name("N")
      ->check(whole_number_check(1, std::numeric_limits<std::int64_t>::max() / 4));
  command.add_option("--seed", options.seed, "Seed of the choices, and of random weights")
      ->type_name("N")
      ->capture_default_str()
      ->group(rare_group)
      ->check(whole_number_check(0, std::numeric_limits<std::int64_t>::max()));
}

void add_model_flags(CLI::App& command, ProbeOptions& options) {
  command.add_option("--model", options.architecture, "Architecture of names and files of weights")
      ->type_name("NAME")
      ->capture_default_str()
      ->check(usage_check([](const std::string& name) { models().get(name); }));
  command
      .add_option("--image-size", options.image_size,
                  "Resize images to N x N; default: as the model expects, for names 224 or 112")
      ->type_name("N")
      ->check(whole_number_check(8, 4096));
  add_with_flag(command, "The plugin of a model of your own: FILE.so or .cpp");
}

}  // namespace

void add_probe_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("probe", "Measure how good the features of models are");
  command->footer(
      "Classifies test images by the features of each MODEL, with few labeled training images: by logistic\n"
      "regression (linear probe) and by the nearest neighbors. All models get the same images. Names have\n"
      "the architecture --model: random has random weights, with batch-norm statistics of training images;\n"
      "imagenet has the published weights that `tandem fetch` put into the cache; scenes has the weights\n"
      "from rendered scenes that ship with Tandem.\n"
      "Example: tandem probe random scenes runs/photos-resnet18-1 mnist");
  auto flags = std::make_shared<Flags>();
  add_positionals(*command, flags->options);
  add_measurement_flags(*command, flags->options);
  add_model_flags(*command, flags->options);
  command->add_option("--from", flags->options.from, "Folder or archive that contains the data set")
      ->type_name("PATH");
  add_device_flag(*command, flags->device, "a GPU if there is one");
  add_json_flag(*command, flags->json, "JSON to a file, or instead of the tables");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace tandem
