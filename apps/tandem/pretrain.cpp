// tandem pretrain: trains a backbone without labels.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "apps/tandem/advice.h"
#include "apps/tandem/command.h"
#include "apps/tandem/flag_table.h"
#include "apps/tandem/output.h"
#include "tandem/nn/model_registry.h"
#include "tandem/text/format_number.h"
#include "tandem/text/message.h"
#include "tandem/train/pretrain/pretrain.h"
#include "tandem/train/progress.h"
#include "tandem/train/signals.h"

namespace tandem {
namespace {

struct Flags {
  PretrainOptions options;
  std::string out, resume, device = "auto", precision = "auto", workers = "auto";
};

PretrainOptions options_of(const Flags& flags, const std::string& command) {
  PretrainOptions options = flags.resume.empty() ? flags.options : read_pretrain_options(flags.resume);
  if (flags.resume.empty()) options.run_folder = flags.out;
  if (flags.resume.empty() && flags.precision != "auto") options.precision = parse_precision(flags.precision);
  if (flags.device != "auto") options.device = parse_device(flags.device);
  if (flags.workers != "auto") options.workers = parse_number<int>(flags.workers);
  options.save_every = flags.options.save_every;
  options.command = command;
  return options;
}

int run(const Flags& flags, const std::string& command) {
  const PretrainOptions options = options_of(flags, command);
  if (options.data == "scenes") tell_named_data(options.data);  // other names are folders
  SignalWatch signals;
  Progress progress;
  const PretrainResult result =
      pretrain(options, {.on_message =
                             [&](const std::string& line) {
                               progress.clear();
                               print_message("{}\n", line);
                             },
                         .on_progress = [&](const ProgressState& state) { progress.update(state); },
                         .stop_signal = [&] { return signals.stop_signal(); }});
  progress.clear();
  const std::string folder = result.folder.string();
  if (result.stopped_by != 0) {
    print_message("Stopped and saved. Continue with: tandem pretrain --resume {}\n", folder);
    return 128 + result.stopped_by;
  }
  const PretrainRecord& last = result.records.back();
  print_output("Time: {:.1f} s\nLoss: {:.4f}, retrieval accuracy {:.2f} %\nWeights: {}\n", result.seconds,
               last.loss, 100 * last.retrieval_accuracy, result.weights.string());
  print_message("Report: {}/report.html\nUse them with: tandem train DATA --model {} --pretrained {}\n",
                folder, options.model, result.weights.string());
  return 0;
}

CLI::Option* add_number(CLI::App& command, const std::string& name, double& value, const std::string& help) {
  return command.add_option(name, value, help)->type_name("X")->capture_default_str()->group(rare_group);
}

std::vector<CLI::Option*> add_training_flags(CLI::App& command, Flags& flags) {
  constexpr std::int64_t max = std::numeric_limits<std::int64_t>::max();
  PretrainOptions& o = flags.options;
  std::vector<CLI::Option*> options{
      command.add_option("--model,-a,--arch", o.model, "A model with a backbone: resnet18, cnn, ...")
          ->type_name("NAME")
          ->capture_default_str()
          ->check(usage_check([](const std::string& name) { models().get(name); })),
      command.add_option("--steps", o.steps, "Steps of the optimizer")
          ->type_name("N")
          ->capture_default_str()
          ->check(whole_number_check(1, max)),
      command.add_option("--batch-size,-b", o.batch_size, "Images per step, each in two views")
          ->type_name("N")
          ->default_str("1024 on a GPU, else 64")
          ->check(whole_number_check(2, max)),
      command.add_option("--image-size", o.image_size, "Side of the views, in pixels")
          ->type_name("N")
          ->capture_default_str()
          ->check(whole_number_check(8, 4096)),
      command.add_option("--lr,--learning-rate", o.learning_rate, "Of LARS, for 1,024 images per step")
          ->type_name("X")
          ->capture_default_str(),
      command.add_option("--seed", o.seed, "Of weights, scenes, order and views")
          ->type_name("N")
          ->capture_default_str()
          ->check(whole_number_check(0, max)),
      command.add_option("--kinds", o.kinds, "Scenes: only these kinds, separated by commas")
          ->type_name("NAMES")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->group(rare_group),
      command.add_option("--precision", flags.precision, "auto (bf16 on a GPU), fp32, tf32 or bf16")
          ->type_name("NAME")
          ->capture_default_str()
          ->group(rare_group)
          ->check(usage_check([](const std::string& name) {
            if (name != "auto") parse_precision(name);
          })),
      add_number(command, "--weight-decay,--wd", o.weight_decay, "Of matrices and filters"),
      add_number(command, "--warmup", o.warmup, "Part of the steps with a rising learning rate"),
      add_number(command, "--temperature", o.temperature, "Of the contrastive loss"),
      add_number(command, "--average", o.average, "Decay of the moving average of the weights"),
      add_number(command, "--attributes", o.attributes,
                 "Scenes: weight of the prediction of their attributes"),
      add_number(command, "--min-area", o.min_area, "Smallest part of an image that a view shows"),
      add_number(command, "--jitter", o.jitter, "How much the colors of views change, 0 to 1")};
  return options;
}

}  // namespace

void add_pretrain_command(CLI::App& app, Action& action, const std::string& command_line) {
  CLI::App* command = app.add_subcommand("pretrain", "Train a backbone without labels");
  command->footer(
      "Contrastive training: two random views of an image shall have similar embeddings, views of different\n"
      "images shall not. DATA is scenes, which are rendered and need no files, or a folder of photographs, "
      "at\n"
      "any depth. The result is RUN/backbone.safetensors.\n"
      "Example: tandem pretrain scenes -o runs/scenes\n"
      "         tandem train photos --pretrained runs/scenes/backbone.safetensors");
  auto flags = std::make_shared<Flags>();
  CLI::Option* const data =
      command->add_option("DATA", flags->options.data, "scenes, or a folder of photographs")->type_name("");
  CLI::Option* const resume =
      command->add_option("--resume", flags->resume, "Go on with a run that was stopped, given its folder")
          ->type_name("RUN");
  CLI::Option* const out = command->add_option("--out,-o,--output-dir", flags->out, "Folder of the run")
                               ->type_name("FOLDER")
                               ->default_str("runs/pretrain-DATA-MODEL-N");
  std::vector<CLI::Option*> fixed = add_training_flags(*command, *flags);
  fixed.insert(fixed.end(), {data, out});
  for (CLI::Option* const option : fixed) resume->excludes(option);
  add_device_flag(*command, flags->device, "a GPU if there is one");
  command->add_option("--workers,-j", flags->workers, "Photographs: threads that read them, or auto")
      ->type_name("N")
      ->capture_default_str()
      ->group(rare_group)
      ->check(usage_check([](const std::string& text) {
        const auto value = parse_number<int>(text);
        check(text == "auto" || (value && *value >= 0 && *value <= 1024),
              "expected auto or a whole number from 0 to 1024, got '{}'", text);
      }));
  command->add_option("--save-every", flags->options.save_every, "Seconds between checkpoints")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->group(rare_group);
  command->callback([flags, data, resume, command_line, &action] {
    if (data->empty() && resume->empty()) throw CLI::RequiredError("DATA");
    action = [flags, command_line] { return run(*flags, command_line); };
  });
}

}  // namespace tandem
