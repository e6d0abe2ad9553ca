// tandem train: trains a classifier and writes a run folder.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/tandem/command.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/files/fetch.h"
#include "tandem/report/interval.h"
#include "tandem/text/message.h"
#include "tandem/train/photo_data.h"
#include "tandem/train/pretrained.h"
#include "tandem/train/progress.h"
#include "tandem/train/run_folder.h"
#include "tandem/train/signals.h"
#include "tandem/train/trainer.h"

namespace tandem {
namespace {

struct Flags {
  std::map<std::string, std::string> given;  // TrainField key → text
  std::string config, preset, out, resume, trace;
  bool resuming = false, accept_changed_data = false;
  double save_every = 60;
};

std::string flag_name(const std::string& key) {
  std::string name = "--" + key;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string run_folder(const Flags& flags) {
  check(flags.resume.empty() || flags.out.empty() || flags.resume == flags.out,
        "[train] expected --out and --resume to name the same folder, got {} and {}", flags.out,
        flags.resume);
  check(flags.resume.empty() || std::filesystem::exists(RunFolder{flags.resume}.config()),
        "[train] {}: no run to resume: it has no config.toml", flags.resume);
  check(!flags.resuming || !(flags.resume + flags.out).empty(),
        "[train] expected the folder of the run: --resume RUNDIR");
  return flags.resume.empty() ? flags.out : flags.resume;
}

// Later settings override earlier ones: defaults, preset, configuration of the resumed run, config file,
// flags.
TrainOptions set_options(const Flags& flags, const RunFolder& folder, TrainOptions options) {
  if (!flags.preset.empty()) apply_preset(options, flags.preset);
  const bool known = flags.resuming && std::filesystem::exists(folder.config());
  if (known) options = read_config(folder.config(), options);
  std::error_code ignored;
  if (!std::filesystem::exists(options.from, ignored))
    options.from.clear();  // the data is in the cache by now
  const std::optional<Device> device = options.device;
  if (!flags.config.empty()) options = read_config(flags.config, options);
  for (const auto& [key, text] : flags.given)
    train_field(key).set(options, parse_field_value(train_field(key), text));
  if (known && !options.device) options.device = device;  // measured when the run started
  return options;
}

// "auto" if the published weights are in the cache or were fetched; else says so, and "none".
std::string fetched_or_none(TrainOptions options, std::int64_t training_images) {
  options.pretrained = "auto";
  const StartingWeights weights = find_starting_weights(options, [&](const std::string& model) {
    return fetch_weights(
        model, weights_fetch_options(options, [](const std::string& line) { print_message("{}\n", line); }));
  });
  if (weights.problem.empty()) return "auto";
  print_message("{}. Get them with: tandem fetch {}\n", random_weights_line(options.model, training_images),
                options.model);
  return "none";
}

// The defaults depend on the model, which may be set in any of these places; otherwise the data decides. They
// also depend on the number of photographs and the initial weights.
TrainOptions to_options(const Flags& flags, const std::string& command) {
  const RunFolder folder{run_folder(flags)};
  TrainOptions base;
  base.model.clear();
  base.pretrained.clear();
  TrainOptions given = set_options(flags, folder, base);
  const bool photographs = is_photo_data(given.data);
  const DatasetRow* const named = datasets().find(given.data);
  if (given.model.empty()) given.model = named ? named->default_model : photographs ? "resnet18" : "mlp";
  check(flags.preset.empty() || given.model == "mlp", "[train] --preset {} expects --model mlp, got {}",
        flags.preset, given.model);
  const bool fresh = !flags.resuming || !std::filesystem::exists(folder.checkpoint());
  const bool published = has_weights(given.model);
  std::string pretrained = !given.pretrained.empty()            ? given.pretrained
                           : photographs && !named && published ? "auto"
                                                                : "none";
  DefaultsFor data{.photographs = photographs, .frozen = given.freeze};
  if (photographs && fresh) data.training_images = count_training_photos(given.data, given.limit);
  if (pretrained == "auto" && published && fresh)
    pretrained = fetched_or_none(given, data.training_images);
  else if (pretrained == "none" && published && fresh)
    print_message("Weights: random\n");
  data.pretrained = pretrained != "none";
  TrainOptions options = set_options(flags, folder, default_options(given.model, data));
  options.pretrained = pretrained;
  options.run_folder = folder.path;
  options.resume = flags.resuming;
  options.accept_changed_data = flags.accept_changed_data;
  options.save_every_seconds = flags.save_every;
  options.trace = flags.trace;
  options.command = command;
  return options;
}

// For a perceptron, only the accuracy.
std::string epoch_line(const EpochRecord& record, const std::string& model) {
  const std::string accuracy = format_accuracy(record.val_accuracy, record.val_count);
  if (model == "mlp") return fmt::format("Epoch {}, accuracy {}.", record.epoch, accuracy);
  return fmt::format("Epoch {}: train loss {:.4f}, accuracy {:.2f} %; val loss {:.4f}, accuracy {}.",
                     record.epoch, record.train_loss, 100 * record.train_accuracy, record.val_loss, accuracy);
}

// Which epoch the figure and the kept model belong to, and what chose it.
std::string kept_text(const TrainResult& result) {
  const std::string epoch = fmt::format("epoch {} of {}", result.best_epoch, result.epochs.size());
  if (result.chosen_on.empty()) return epoch + ", the last";
  if (result.chosen_on != result.tested_on) return epoch + ", the best on the validation images";
  return epoch + ", the best on these images: expect less on new ones";
}

int run(const Flags& flags, const std::string& command) {
  const TrainOptions options = to_options(flags, command);
  SignalWatch signals;
  Progress progress;
  const TrainResult result =
      train(options, {.on_message =
                          [&](const std::string& line) {
                            progress.clear();
                            print_message("{}\n", line);
                          },
                      .on_progress = [&](const ProgressState& state) { progress.update(state); },
                      .on_epoch =
                          [&](const EpochRecord& record) {
                            progress.clear();
                            fmt::print("{}\n", epoch_line(record, options.model));
                            std::fflush(stdout);
                          },
                      .stop_signal = [&] { return signals.stop_signal(); },
                      .save_requested = [&] { return signals.consume_save_request(); }});
  progress.clear();
  const std::string folder = result.folder.string();
  if (result.stopped_by != 0) {
    print_message("Stopped and saved. Continue with: tandem train --resume {}\n", folder);
    return 128 + result.stopped_by;
  }
  fmt::print("Time: {:.1f} s\n{} accuracy: {}\nKept model: {}\n", result.seconds,
             result.tested_on == "test" ? "Test" : "Validation",
             describe_accuracy(result.test_accuracy, result.test_count), kept_text(result));
  print_message("Report: {0}/report.html; best model (epoch {1}): {0}/best.safetensors\n", folder,
                result.best_epoch);
  return 0;
}

// Common flags are shown with their help; the others are listed in the footer.
bool is_common(const std::string& key) {
  static const std::vector<std::string> common{"model",      "layers",    "epochs",  "batch_size",
                                               "lr",         "optimizer", "augment", "seed",
                                               "pretrained", "freeze",    "limit",   "device"};
  return std::ranges::find(common, key) != common.end();
}

void add_field(CLI::App& command, const TrainField& field, const std::shared_ptr<Flags>& flags) {
  const std::string key = field.key;
  const auto store = [flags, key, &field](const std::string& text) {
    as_usage(flag_name(key), [&] {
      TrainOptions scratch;
      field.set(scratch, parse_field_value(field, text));
    });
    flags->given[key] = text;
  };
  CLI::Option* option = nullptr;
  if (key == "data")
    option = command.add_option_function<std::string>("DATA", store, field.help);
  else if (field.kind == TrainField::Kind::flag)
    option = command.add_flag_function(
        flag_name(key), [store](std::int64_t) { store("true"); }, field.help);
  else
    option = command.add_option_function<std::string>(flag_name(key), store, field.help);
  option->type_name(key == "data" ? "" : field.value_name);
  if (key != "data" && !is_common(key)) option->group("");
}

std::string rare_flags() {
  std::string line = "More:", text;
  const auto add = [&](const std::string& word) {
    if (line.size() + word.size() > 96) {
      text += line + "\n";
      line = "     ";
    }
    line += word;
  };
  for (const TrainField& field : train_fields())
    if (!is_common(field.key) && std::string(field.key) != "data")
      add(fmt::format(" {}{}{}", flag_name(field.key), *field.value_name ? " " : "", field.value_name));
  add(" --trace FILE");
  add(" --accept-changed-data");
  return text + line + "\n";
}

}  // namespace

void add_train_command(CLI::App& app, Action& action, const std::string& command_line) {
  CLI::App* command = app.add_subcommand("train", "Train an image classifier");
  command->footer(
      rare_flags() +
      "A folder contains idx files or photographs: one folder per class, or train/ with such folders and\n"
      "perhaps val/ and test/. The model is chosen on val/, else on every 6th photograph, held out.\n"
      "Example: tandem train photos --model resnet18 --freeze --out runs/first");
  auto flags = std::make_shared<Flags>();
  for (const TrainField& field : train_fields()) add_field(*command, field, flags);
  command->add_option("--preset", flags->preset, "best: the settings with the best accuracy")
      ->type_name("NAME")
      ->check(usage_check([](const std::string& name) {
        TrainOptions scratch;
        apply_preset(scratch, name);
      }));
  command->add_option("--config", flags->config, "TOML file, as a run's config.toml; flags override it")
      ->type_name("FILE");
  command->add_option("--out", flags->out, "Run folder, runs/DATA-MODEL-N by default")->type_name("RUNDIR");
  auto* resume = command->add_option("--resume", flags->resume, "Resume the run in RUNDIR or --out")
                     ->type_name("[RUNDIR]")
                     ->expected(0, 1);
  command->add_option("--save-every", flags->save_every, "Seconds between checkpoints, 60 by default")
      ->type_name("S")
      ->check(usage_check([](const std::string& text) {
        const TomlValue value = parse_field_value(train_field("lr"), text);
        const auto* seconds = std::get_if<double>(&value);
        check(seconds != nullptr && *seconds >= 0, "expected seconds of 0 or more, got '{}'", text);
      }));
  command
      ->add_flag("--accept-changed-data", flags->accept_changed_data,
                 "Resume even if classes or photographs changed")
      ->group("");
  command->add_option("--trace", flags->trace, "Write a timeline for chrome://tracing or Perfetto")
      ->type_name("FILE")
      ->group("");
  command->callback([flags, resume, &action, command_line] {
    flags->resuming = resume->count() > 0;
    action = [flags, command_line] { return run(*flags, command_line); };
  });
}

}  // namespace tandem
