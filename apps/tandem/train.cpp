// tandem train: trains a classifier and writes a run folder.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/tandem/advice.h"
#include "apps/tandem/command.h"
#include "apps/tandem/common_flags.h"
#include "apps/tandem/flag_table.h"
#include "apps/tandem/output.h"
#include "apps/tandem/with_plugins.h"
#include "tandem/core/host_memory.h"
#include "tandem/core/message_of.h"
#include "tandem/core/write_file.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/dist/connect_group.h"
#include "tandem/files/fetch.h"
#include "tandem/report/interval.h"
#include "tandem/text/message.h"
#include "tandem/text/utf8.h"
#include "tandem/train/failed_rank.h"
#include "tandem/train/local_ranks.h"
#include "tandem/train/photo_data.h"
#include "tandem/train/pretrained.h"
#include "tandem/train/progress.h"
#include "tandem/train/rank_cpus.h"
#include "tandem/train/ranks.h"
#include "tandem/train/run_folder.h"
#include "tandem/train/signals.h"
#include "tandem/train/stop_time.h"
#include "tandem/train/trainer.h"

namespace tandem {
namespace {

struct Flags {
  std::map<std::string, std::string> given;  // TrainField key → text
  std::string config, preset, out, resume, trace, json;
  bool resuming = false, accept_changed_data = false;
  double save_every = 60;
  int ranks = 0;  // 0: not given
  double rank_limit = GroupOptions().limit_s;
  std::int64_t accumulate = 1;
  std::string until;
  bool exchange_through_cpu = false;
  bool sandbox = false;
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

// What options.pretrained means here.
std::string choose_starting_weights(const TrainOptions& options, std::int64_t training_images) {
  const ChosenWeights chosen = choose_weights(options, [&](const std::string& model) {
    return fetch_weights(
        model, weights_fetch_options(options, [](const std::string& line) { print_message("{}\n", line); }));
  });
  if (!chosen.problem.empty())
    print_message("{}. Get them with: tandem fetch {}\n",
                  fallback_line(options.model, chosen, training_images), options.model);
  else if (chosen.name == "none" && has_any_weights(options.model))
    print_message("Weights: random\n");
  return chosen.name;
}

// A preset is made for one model, and "record" for one data set.
void check_preset(const std::string& name, const TrainOptions& given) {
  TrainOptions preset;
  apply_preset(preset, name);
  check(given.model == preset.model, "[train] --preset {} expects --model {}, got {}", name, preset.model,
        given.model);
  check(name != "record" || given.data == "cifar10", "[train] --preset record expects cifar10, got {}",
        given.data);
}

// The defaults depend on the model, which may be set in any of these places; otherwise the data decides. They
// also depend on the number of photographs and the initial weights.
TrainOptions to_options(const Flags& flags, const std::string& command, Group& group) {
  const RunFolder folder{run_folder(flags)};
  TrainOptions base;
  base.model.clear();
  base.pretrained.clear();
  base.shards = 0;
  base.folds = -1;
  TrainOptions given = set_options(flags, folder, base);
  tell_named_data(given.data);
  const bool photographs = is_photo_data(given.data);
  const DatasetRow* const named = datasets().find(given.data);
  if (given.model.empty()) given.model = named ? named->default_model : photographs ? "resnet18" : "mlp";
  if (!flags.preset.empty()) check_preset(flags.preset, given);
  const bool fresh = !flags.resuming || !has_checkpoint(folder);
  if (given.pretrained == "auto" && flags.resuming && std::filesystem::exists(folder.config()))
    given.pretrained = read_config(folder.config()).pretrained;  // what it meant when the run started
  if (given.pretrained.empty())
    given.pretrained = photographs && !named && has_any_weights(given.model) ? "auto" : "none";
  DefaultsFor data{.photographs = photographs,
                   .frozen = given.freeze && given.unfreeze_at == 0,
                   .keeps_head = given.keep_head,
                   .fits_head = given.loss == LossKind::cross_entropy};
  PhotoCounts photos;
  if (fresh && photographs) photos = count_photos(given.data, given.limit);
  if (fresh) data.training_images = photographs ? photos.training : given.limit;
  std::string pretrained = given.pretrained;
  if (fresh && group.place().rank == 0 && (pretrained != "auto" || has_any_weights(given.model)))
    pretrained = choose_starting_weights(given, data.training_images);
  pretrained = broadcast_text(group, pretrained);
  data.pretrained = pretrained != "none";
  TrainOptions defaults = default_options(given.model, data);
  if (flags.accumulate > 1)
    defaults.batch_norm = ShardNorm::shard;  // the images come one part after the other
  TrainOptions options = set_options(flags, folder, defaults);
  options.pretrained = pretrained;
  check(options.batch_size == 0 || flags.accumulate <= options.batch_size,
        "[train] expected --accumulate of at most {}, the images of a batch, got {}", options.batch_size,
        flags.accumulate);
  if (given.folds < 0)
    options.folds = photos.has_other_parts ? 0 : default_folds(options, photos.smallest_class);
  if (given.shards == 0) options.shards = group.place().size * flags.accumulate;
  options.accept_changed_shards = flags.given.contains("shards");
  options.run_folder = folder.path;
  options.resume = flags.resuming;
  options.accept_changed_data = flags.accept_changed_data;
  options.accumulate = flags.accumulate;
  options.exchange_through_cpu = flags.exchange_through_cpu;
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
  if (!result.folds.empty())
    return fmt::format("trained on all {} images, not measured itself: expect the accuracy of the folds",
                       result.test_count);
  if (result.epochs.size() == 1) return "the only epoch";
  const std::string epoch = fmt::format("epoch {} of {}", result.best_epoch, result.epochs.size());
  if (result.chosen_on.empty()) return epoch + ", the last";
  if (result.chosen_on != result.tested_on) return epoch + ", the best on the validation images";
  return epoch + ", the best on these images: expect less on new ones";
}

std::string epoch_json(const EpochRecord& record) {
  std::vector<ResultField> fields{{"epoch", std::int64_t{record.epoch}},
                                  {"train_loss", record.train_loss},
                                  {"train_accuracy", record.train_accuracy},
                                  {"val_loss", record.val_loss},
                                  {"val_accuracy", record.val_accuracy},
                                  {"learning_rate", record.learning_rate},
                                  {"seconds", record.seconds},
                                  {"samples_per_second", record.samples_per_second},
                                  {"waited_seconds", record.waited_seconds}};
  if (std::isfinite(record.exchange_seconds)) fields.push_back({"exchange_seconds", record.exchange_seconds});
  for (const NamedFigure& metric : record.metrics) fields.push_back({metric.name, metric.value});
  return result_json(fields);
}

// One line: for people, or JSON for programs.
void report_line(const Flags& flags, const std::string& text, const std::string& json) {
  print_text(is_stdout(flags.json) ? json : text);
  if (!flags.json.empty() && !is_stdout(flags.json)) append_file("train", flags.json, json);
}

std::string fold_line(const FoldRecord& record) {
  return fmt::format("Fold {} of {}: accuracy {:.2f} %, {} of {} images.\n", record.fold, record.folds,
                     100 * record.accuracy(), record.correct, record.images);
}

std::string fold_json(const FoldRecord& record) {
  return result_json({{"fold", std::int64_t{record.fold}},
                      {"training_images", record.training_images},
                      {"images", record.images},
                      {"correct", record.correct},
                      {"accuracy", record.accuracy()},
                      {"loss", record.loss},
                      {"seconds", record.seconds}});
}

// What the accuracy was measured on, and of a cross-validation how much the folds differ.
std::string accuracy_text(const TrainResult& result) {
  const std::string accuracy = describe_accuracy(result.test_accuracy, result.test_count);
  std::string text =
      result.folds.empty()
          ? fmt::format("{} accuracy: {}\n", result.tested_on == "test" ? "Test" : "Validation", accuracy)
          : fmt::format("Cross-validated accuracy: {}\nFolds: {}, mean and standard deviation of {}\n",
                        accuracy, format_summary(summarize(result.folds)), result.folds.size());
  if (std::isfinite(result.fp32_accuracy))
    text += fmt::format("With features in fp32: {}, the same class for {}\n",
                        describe_accuracy(result.fp32_accuracy, result.test_count),
                        format_accuracy(result.same_class, result.test_count));
  return text;
}

// The temperature and the threshold that the kept model has.
std::string decision_text(const Decision& decision) {
  std::string text;
  if (decision.temperature != 1) text += fmt::format("Temperature: {:.4g}\n", decision.temperature);
  if (decision.threshold)
    text += fmt::format("Threshold: {:.4g}, of the second class\n", *decision.threshold);
  return text;
}

// A local rank may start a moment after the time; it was checked when the ranks were started.
void check_until(const std::string& text) {
  const SystemTime now = std::chrono::system_clock::now();
  if (detect_launch(process_environment()).launcher == Launcher::local)
    parse_stop_time(text, now);
  else
    check_stop_time(text, now);
}

// When rank 0 asks all to save and stop, as a SIGTERM does.
std::optional<SystemTime> stop_time(const Flags& flags) {
  const SystemTime now = std::chrono::system_clock::now();
  const std::optional<SystemTime> until =
      flags.until.empty() ? job_stop_time(process_environment(), now) : parse_stop_time(flags.until, now);
  if (until) print_message("Until {}: saves and stops then\n", format_time(*until));
  return until;
}

int train_here(const Flags& flags, const std::string& command, Group& group) {
  const TrainOptions options = to_options(flags, command, group);
  if (flags.sandbox) confine_decoders(options.max_pixels, training_decode_ms);
  const bool is_first = group.place().rank == 0;
  if (is_first && !flags.json.empty() && !is_stdout(flags.json)) write_file("train", flags.json, "");
  const std::optional<SystemTime> until = is_first ? stop_time(flags) : std::nullopt;
  bool is_late = false;
  SignalWatch signals;
  const auto stop_signal = [&] {
    if (signals.stop_requested()) return signals.stop_signal();
    is_late = is_late || (until && std::chrono::system_clock::now() >= *until);
    return is_late ? SIGTERM : 0;
  };
  Progress progress;
  const TrainResult result =
      train(options, group,
            {.on_message =
                 [&](const std::string& line) {
                   progress.clear();
                   print_message("{}\n", line);
                 },
             .on_progress = [&](const ProgressState& state) { progress.update(state); },
             .on_epoch =
                 [&](const EpochRecord& record) {
                   progress.clear();
                   report_line(flags, epoch_line(record, options.model) + "\n", epoch_json(record));
                 },
             .on_fold =
                 [&](const FoldRecord& record) {
                   progress.clear();
                   report_line(flags, fold_line(record), fold_json(record));
                 },
             .stop_signal = stop_signal,
             .save_requested = [&] { return signals.consume_save_request(); }});
  progress.clear();
  const std::string folder = result.folder.string();
  if (!is_first) return result.stopped_by != 0 ? 128 + result.stopped_by : 0;
  if (result.stopped_by != 0) {
    print_message("{} and saved. Continue with: tandem train --resume {}{}\n",
                  is_late ? "Time is up: stopped" : "Stopped", folder, flags.sandbox ? " --sandbox" : "");
    return 128 + result.stopped_by;
  }
  const std::string summary =
      fmt::format("Time: {:.1f} s\n{}{}Kept model: {}\n", result.seconds, accuracy_text(result),
                  decision_text(result.decision), kept_text(result));
  if (is_stdout(flags.json))
    print_message("{}", summary);
  else
    print_text(summary);
  print_message("{2} (epoch {1}): {0}/best.safetensors\nReport: {0}/report.html\n", folder, result.best_epoch,
                result.folds.empty() ? "Best model" : "Model of all images");
  return 0;
}

// Of this process, as they were given.
std::vector<std::string> process_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  check(!words.empty() && !file.bad(), "[train] cannot read /proc/self/cmdline to start ranks");
  return words;
}

// Shares the CPUs of a node among its ranks, before anything is computed.
void share_out_cpus(Group& group, Launcher launcher) {
  const std::string warning = take_share_of_cpus(group, launcher);
  if (!warning.empty() && group.place().rank == 0) print_message("Warning: {}\n", with_advice(warning));
}

// As one of several ranks. Errors reach rank 0, which prints them: the others are quiet.
int train_as_rank(const Flags& flags, const std::string& command, const LaunchedRank& launched) {
  if (launched.place.rank != 0) hide_messages();
  if (launched.launcher == Launcher::local) end_with_parent();
  std::unique_ptr<Group> group;
  try {
    check(flags.ranks == 0 || launched.launcher == Launcher::local,
          "[train] expected no --ranks, which starts ranks on this machine: {} has started {} ranks",
          name_of(launched.launcher), launched.place.size);
    group = connect_group(launched, {.limit_s = flags.rank_limit});
    share_host_memory(group->place().local_size);
    share_out_cpus(*group, launched.launcher);
    return train_here(flags, command, *group);
  } catch (const std::exception& error) {
    const std::string text =
        group ? end_with_error(*group, error) : end_with_error(launched, message_of(error));
    restore_messages();
    if (!text.empty()) print_message("tandem: error: {}\n", one_line(with_advice(text)));
    if (dynamic_cast<const LostRank*>(&error) == nullptr) return 1;
    std::fflush(stdout);
    std::_Exit(lost_rank_status);  // what waits for the lost rank is not waited for
  }
}

int run(const Flags& flags, const std::string& command) {
  const LaunchedRank launched = detect_launch(process_environment());
  if (launched.launcher != Launcher::none && launched.place.size > 1)
    return train_as_rank(flags, command, launched);
  if (flags.ranks > 1) return run_local_ranks({.ranks = flags.ranks, .arguments = process_arguments()});
  const std::unique_ptr<Group> group = solo_group();
  share_out_cpus(*group, launched.launcher);
  return train_here(flags, command, *group);
}

// Other names of a field's flag, as people know them from torchvision and timm.
std::string aliases(const std::string& key) {
  static const std::map<std::string, std::string> names{{"batch_size", ",-b"},
                                                        {"workers", ",-j,--num-workers"},
                                                        {"model", ",-a,--arch"},
                                                        {"optimizer", ",--opt"},
                                                        {"lr", ",--learning-rate"},
                                                        {"weight_decay", ",--wd"},
                                                        {"schedule", ",--sched,--lr-scheduler"},
                                                        {"step_size", ",--lr-step-size"},
                                                        {"gamma", ",--lr-gamma"},
                                                        {"min_lr", ",--lr-min"},
                                                        {"warmup_epochs", ",--lr-warmup-epochs"},
                                                        {"mixup", ",--mixup-alpha"},
                                                        {"cutmix", ",--cutmix-alpha"},
                                                        {"early_stopping", ",--patience"}};
  const auto found = names.find(key);
  return found == names.end() ? "" : found->second;
}

// --help shows these; the others are shown by --help-all.
bool is_common(const std::string& key) {
  static const std::vector<std::string> common{"model",     "layers",  "epochs",  "batch_size", "lr",
                                               "optimizer", "augment", "workers", "seed",       "pretrained",
                                               "freeze",    "limit",   "device"};
  return std::ranges::find(common, key) != common.end();
}

// The default as --help-all shows it; several depend on the model or the data.
std::string default_text(const TrainField& field) {
  static const std::map<std::string, const char*> dependent{
      {"model", "by data"}, {"augment", "by data"},    {"epochs", "by model"},   {"batch_size", "by model"},
      {"lr", "by model"},   {"optimizer", "by model"}, {"pretrained", "by data"}};
  const auto found = dependent.find(field.key);
  if (found != dependent.end()) return found->second;
  return field.kind == TrainField::Kind::flag ? "" : plain_text(field.get(TrainOptions()));
}

void add_field(CLI::App& command, const TrainField& field, const std::shared_ptr<Flags>& flags) {
  const std::string key = field.key;
  const auto store = [flags, key, &field](const std::string& word) {
    const std::string text = key == "device" ? device_name(word) : word;
    as_usage(key == "data" ? "DATA" : flag_name(key), [&] {
      TrainOptions scratch;
      field.set(scratch, parse_field_value(field, text));
    });
    flags->given[key] = text;
  };
  CLI::Option* option = nullptr;
  if (key == "data")
    option = command.add_option_function<std::string>("DATA", store, field.help);
  else if (key == "freeze")  // a flag that may have a value: with_freeze_values()
    option = command.add_option_function<std::string>(flag_name(key), store, field.help)->expected(0, 1);
  else if (field.kind == TrainField::Kind::flag)
    option = command.add_flag_function(
        flag_name(key), [store](std::int64_t count) { store(count < 0 ? "false" : "true"); }, field.help);
  else
    option = command.add_option_function<std::string>(flag_name(key) + aliases(key), store, field.help);
  option->type_name(key == "data" ? "" : field.value_name);
  option->default_str(default_text(field));
  if (key != "data" && !is_common(key)) option->group(rare_group);
}

std::string preset_help() {
  std::vector<std::string> parts;
  for (const PresetRow& row : presets().rows()) parts.push_back(row.name + ": " + row.summary);
  return fmt::format("{}", fmt::join(parts, "; "));
}

// What "by model" means.
std::string model_defaults() {
  std::string text = "Defaults by model:\n";
  std::size_t width = 0;
  for (const ModelRow& row : models().rows()) width = std::max(width, row.name.size());
  for (const ModelRow& row : models().rows())
    text += fmt::format("  {:<{}} {} epochs, batch size {}, {}, learning rate {}\n", row.name, width,
                        row.defaults.epochs, row.defaults.batch_size, row.defaults.optimizer,
                        row.defaults.learning_rate);
  return text;
}

}  // namespace

std::vector<std::string> with_freeze_values(std::vector<std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] != "--freeze") continue;
    const bool is_counted = i + 1 < words.size() && parse_number<std::int64_t>(words[i + 1]).has_value();
    words[i] += "=" + (is_counted ? words[i + 1] : "true");
    if (is_counted) words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  return words;
}

void add_train_command(CLI::App& app, Action& action, const std::string& command_line) {
  CLI::App* command = app.add_subcommand("train", "Train an image classifier");
  command->footer(
      model_defaults() +
      "\f"
      "A folder contains idx files or photographs: one folder per class, or train/ with such folders and\n"
      "perhaps val/ and test/. The model is chosen on val/, else on every 6th photograph; if only the\n"
      "last layer is fitted, it is cross-validated.\n"
      "Example: tandem train photos --model resnet18 --freeze --out runs/first");
  auto flags = std::make_shared<Flags>();
  for (const TrainField& field : train_fields())
    if (std::string_view(field.key) == "with")
      add_with_flag(*command, field.help,
                    [flags](const std::string& files) { flags->given["with"] = files; });
    else
      add_field(*command, field, flags);
  command->add_option("--preset", flags->preset, preset_help())
      ->type_name("NAME")
      ->check(usage_check([](const std::string& name) {
        TrainOptions scratch;
        apply_preset(scratch, name);
      }));
  command->add_option("--config", flags->config, "TOML file, as a run's config.toml; flags override it")
      ->type_name("FILE");
  command->add_option("--out,-o,--output-dir", flags->out, "Run folder")
      ->type_name("RUNDIR")
      ->default_str("runs/DATA-MODEL-N");
  auto* resume =
      command->add_option("--resume", flags->resume, "Resume RUNDIR or --out; auto: if there is a run")
          ->type_name("[RUNDIR]")
          ->expected(0, 1);
  command->add_option("--save-every", flags->save_every, "Seconds between checkpoints")
      ->type_name("S")
      ->capture_default_str()
      ->group(rare_group)
      ->check(usage_check([](const std::string& text) {
        const TomlValue value = parse_field_value(train_field("lr"), text);
        const auto* seconds = std::get_if<double>(&value);
        check(seconds != nullptr && *seconds >= 0, "expected seconds of 0 or more, got '{}'", text);
      }));
  command
      ->add_flag("--accept-changed-data", flags->accept_changed_data,
                 "Resume even if classes or photographs changed")
      ->group(rare_group);
  command->add_option("--ranks", flags->ranks, "Processes that share every batch")
      ->type_name("N")
      ->default_str("1")
      ->check(whole_number_check(1, LocalSegment::max_ranks));
  command
      ->add_option("--rank-limit", flags->rank_limit, "Seconds without an answer after which a rank is lost")
      ->type_name("S")
      ->capture_default_str()
      ->group(rare_group)
      ->check(usage_check([](const std::string& text) {
        const auto seconds = parse_number<double>(text);
        check(seconds && *seconds > 0 && *seconds <= 1e6, "expected seconds above 0, got '{}'", text);
      }));
  command
      ->add_option("--accumulate", flags->accumulate,
                   "Compute each rank's part of a batch in N passes, with batch norms per shard: less memory")
      ->type_name("N")
      ->capture_default_str()
      ->group(rare_group)
      ->check(whole_number_check(1, 1 << 20));
  command
      ->add_option("--until", flags->until, "Save and stop at 18:30, 2026-11-17T18:30 or after +90 minutes")
      ->type_name("TIME")
      ->default_str("before a SLURM job ends")
      ->group(rare_group)
      ->check(usage_check(check_until));
  command
      ->add_option_function<std::string>(
          "--comm", [flags](const std::string& text) { flags->exchange_through_cpu = text == "host"; },
          "How GPUs of several ranks exchange gradients: auto (NCCL), or host, through the CPU")
      ->type_name("auto|host")
      ->default_str("auto")
      ->group(rare_group)
      ->check(usage_check([](const std::string& text) {
        check(text == "auto" || text == "host", "expected auto or host, got '{}'", text);
      }));
  add_sandbox_flag(*command, flags->sandbox);
  command->get_option("--sandbox")->group(rare_group);
  add_json_flag(*command, flags->json, "One line of JSON per epoch and fold instead of text");
  command->add_option("--trace", flags->trace, "Write a timeline for chrome://tracing or Perfetto")
      ->type_name("FILE")
      ->group(rare_group);
  command->callback([flags, resume, &action, command_line] {
    flags->resuming = resume->count() > 0;
    if (flags->resume == "auto") {  // for jobs that are started again: the first start has nothing to resume
      if (flags->out.empty()) throw CLI::RequiresError("--resume auto", "--out");
      flags->resume.clear();
      flags->resuming = std::filesystem::exists(RunFolder{flags->out}.config());
    }
    action = [flags, command_line] { return run(*flags, command_line); };
  });
}

}  // namespace tandem
