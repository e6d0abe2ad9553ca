// tandem study: checks that all versions of a computation agree, then measures them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/tandem/advice.h"
#include "apps/tandem/command.h"
#include "apps/tandem/flag_table.h"
#include "apps/tandem/output.h"
#include "apps/tandem/status_line.h"
#include "apps/tandem/terminal.h"
#include "apps/tandem/with_plugins.h"
#include "tandem/core/check.h"
#include "tandem/core/clock.h"
#include "tandem/data/loader/worker_kind.h"
#include "tandem/dist/local_segment.h"
#include "tandem/report/html.h"
#include "tandem/report/json.h"
#include "tandem/report/provenance.h"
#include "tandem/report/study_text.h"
#include "tandem/study/cluster_case.h"
#include "tandem/study/kernel_sweep.h"
#include "tandem/study/plugin/peers.h"
#include "tandem/study/plugin/plugin_file.h"
#include "tandem/study/studies.h"
#include "tandem/text/format_number.h"
#include "tandem/text/message.h"
#include "tandem/text/utf8.h"
#include "tandem/train/options.h"
#include "tandem/train/progress.h"

namespace tandem {
namespace {

struct Flags {
  std::string name, json, html, data, device = "auto", pretrained = "auto", augment, layers;
  std::vector<std::string> cases, versions, kernels, plugins, peers;
  std::vector<int> threads, workers, ranks;
  std::vector<std::string> simulate;
  std::uint64_t seed = 1;
  std::int64_t epochs = 0, seeds = 0, limit = 0;
  double time_limit_s = 300;
  bool quick = false;
};

// A plugin with a name of its own, compiled if necessary; the command is shown.
PluginFile prepare(const std::string& source, const StudyOptions& options) {
  PluginFile plugin = prepare_plugin(source);
  if (!plugin.command.empty()) print_message("{}\n", plugin.command);
  const auto is_taken = [&](const std::string& name) {
    return std::ranges::any_of(all_versions, [&](Version version) { return name_of(version) == name; }) ||
           std::ranges::any_of(options.plugins, [&](const PluginFile& other) { return other.name == name; });
  };
  if (is_taken(plugin.name))
    plugin.name = plugin.source.filename().string();  // kernels.cu beside kernels.cpp
  const std::string name = plugin.name;
  for (int i = 2; is_taken(plugin.name); ++i) plugin.name = fmt::format("{}-{}", name, i);
  return plugin;
}

std::vector<std::int64_t> parse_layers(const std::string& text) {
  TrainOptions train;
  train_field("layers").set(train, parse_field_value(train_field("layers"), text));
  return train.layers;
}

StudyOptions to_options(const Flags& flags) {
  StudyOptions options{.quick = flags.quick,
                       .cases = flags.cases,
                       .peers = flags.peers,
                       .threads = flags.threads,
                       .workers = flags.workers,
                       .ranks = flags.ranks,
                       .seed = flags.seed,
                       .epochs = flags.epochs,
                       .seeds = flags.seeds,
                       .data = flags.data,
                       .limit = flags.limit,
                       .pretrained = flags.pretrained,
                       .time_limit_s = flags.time_limit_s};
  if (flags.device != "auto") options.devices = {parse_device(flags.device)};
  for (const std::string& version : flags.versions) options.versions.push_back(parse_version(version));
  for (const std::string& source : flags.plugins) options.plugins.push_back(prepare(source, options));
  for (const std::string& kernel : flags.kernels) options.kernels.push_back(parse_kernel_size(kernel));
  for (const std::string& size : flags.simulate) options.simulate.push_back(parse_cluster_size(size));
  if (!flags.augment.empty()) options.augment = Transform::parse(flags.augment).for_one_size();
  if (!flags.layers.empty()) options.layers = parse_layers(flags.layers);
  return options;
}

StudyReport run_study(const Study& study, StudyOptions options, const std::string& command_line) {
  StatusLine line;
  const Stopwatch watch;
  options.on_progress = [&](const std::string& what) {
    line.show(fmt::format("{}: {} ({:.0f} s)", study.name, what, watch.elapsed_ms() / 1e3));
  };
  const RenderObserver rendering([&](std::int64_t done, std::int64_t total) {
    options.on_progress(fmt::format("rendering images, {} of {}", format_count(done), format_count(total)));
  });
  std::vector<Fact> made_by = provenance(command_line, options.seed);  // the load before the study
  StudyReport report = study.run(options);
  report.provenance = std::move(made_by);
  return report;
}

int run(const Flags& flags, const std::string& command_line) {
  const StudyOptions options = to_options(flags);
  tell_named_data(flags.data);
  for (const std::string& path : {flags.json, flags.html}) check_output(path, "study");
  const bool print_tables = !is_stdout(flags.json) && !is_stdout(flags.html);
  const TextStyle style = terminal_style(stdout);
  std::vector<StudyReport> reports;
  for (const Study& study : studies().rows()) {
    if (flags.name != "all" && flags.name != study.name) continue;
    print_message("Running study {}: {} …\n", study.name, study.summary);
    reports.push_back(run_study(study, options, command_line));
    if (!print_tables) continue;
    if (reports.size() == 1) print_output("{}\n", machine_text(reports.front().machine, style));
    print_output("{}\n", study_text(reports.back(), style));
    std::fflush(stdout);
  }
  if (!flags.json.empty())
    write_output(flags.json, flags.name == "all" ? to_json_text(reports) : to_json_text(reports.front()),
                 "study");
  if (!flags.html.empty()) write_output(flags.html, html_page(reports, "Tandem studies"), "study");
  const bool all_agree = std::all_of(reports.begin(), reports.end(), [](const StudyReport& report) {
    return std::all_of(report.rows.begin(), report.rows.end(),
                       [](const StudyRow& row) { return row.agrees; });
  });
  return all_agree ? 0 : 1;
}

// What is trained and swept; the options that not every study reads.
std::vector<const CLI::Option*> add_setup_flags(CLI::App& command, Flags& flags) {
  return {
      command.add_option("--kernels", flags.kernels, "correlation: kernel sizes, such as 3,5,7 or 3x5")
          ->type_name("SIZES")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->check(usage_check([](const std::string& text) { parse_kernel_size(text); })),
      command.add_option("--data", flags.data, "augment, workers: mnist, digits, … or a PATH")
          ->type_name("DATA"),
      command.add_option("--augment", flags.augment, "augment, workers: as in tandem train; default: digits")
          ->type_name("RECIPE"),
      command.add_option("--layers", flags.layers, "augment, workers: sizes, such as 784,200,10")
          ->type_name("SIZES")
          ->check(usage_check([](const std::string& text) { parse_layers(text); })),
      command.add_option("--ranks", flags.ranks, "cluster: numbers of processes, such as 1,2,4")
          ->type_name("COUNTS")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->check(whole_number_check(1, LocalSegment::max_ranks)),
      command.add_option("--simulate", flags.simulate, "cluster: nodes x ranks to model, such as 8x128")
          ->type_name("SIZES")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->check(usage_check([](const std::string& text) { parse_cluster_size(text); })),
      command.add_option("--limit", flags.limit, "augment, workers: the first N training images")
          ->type_name("N")
          ->group(rare_group)
          ->check(whole_number_check(1, 1000000)),
  };
}

}  // namespace

void add_study_command(CLI::App& app, Action& action, const std::string& command_line) {
  CLI::App* command = app.add_subcommand("study", "Check and measure every version of a computation");
  std::string list = "Studies:\n";
  for (const Study& study : studies().rows()) list += fmt::format("  {:<12} {}\n", study.name, study.summary);
  command->footer(list +
                  "The exit status is 1 when a version disagrees.\n"
                  "Example: tandem study correlation --threads 1,2,4 --html report.html");
  auto flags = std::make_shared<Flags>();
  command->add_option("NAME", flags->name, studies().list() + " or all")
      ->required()
      ->type_name("")
      ->check(usage_check([](const std::string& name) {
        check(name == "all" || studies().find(name), "expected one of {}, all, got '{}'{}", studies().list(),
              name, did_you_mean(name, studies().names()));
      }));
  command->add_flag("--quick", flags->quick, "Small cases, few repetitions: seconds, not minutes");
  add_device_flag(*command, flags->device, "every device");
  auto* versions =
      command->add_option("--versions", flags->versions, "Some of reference,simd,parallel,cuda-simple,cuda")
          ->type_name("NAMES")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->check(usage_check([](const std::string& name) { parse_version(name); }));
  auto* with =
      command->add_option("--with", flags->plugins, "Your max, xxt, correlation, or operation of --augment")
          ->type_name("FILES")
          ->delimiter(',')
          ->allow_extra_args(false);
  auto* peers = command->add_option("--peers", flags->peers, "Libraries to compare with, such as scipy,numba")
                    ->type_name("NAMES")
                    ->delimiter(',')
                    ->allow_extra_args(false)
                    ->check(usage_check([](const std::string& name) {
                      const std::vector<std::string> known = known_peers();
                      check(std::ranges::find(known, name) != known.end(), "expected one of {}, got '{}'{}",
                            fmt::join(known, ", "), name, did_you_mean(name, known));
                    }));
  command->add_option("--cases,--case", flags->cases, "Cases, such as \"10x10 i32,4096x512 i32\"")
      ->type_name("CASES")
      ->delimiter(',')
      ->allow_extra_args(false);
  auto* threads = command
                      ->add_option("--threads,--cores", flags->threads,
                                   "Threads of `parallel` or of training, such as 1,2,4,8")
                      ->type_name("COUNTS")
                      ->delimiter(',')
                      ->allow_extra_args(false)
                      ->check(whole_number_check(1, 4096));
  auto* workers = command->add_option("--workers", flags->workers, "workers: how many, such as 8,16,32")
                      ->type_name("COUNTS")
                      ->delimiter(',')
                      ->allow_extra_args(false)
                      ->check(whole_number_check(1, max_workers));
  std::vector<const CLI::Option*> some = add_setup_flags(*command, *flags);
  command->add_option("--seed", flags->seed, "Seed of the random inputs")
      ->type_name("N")
      ->capture_default_str()
      ->group(rare_group)
      ->check(whole_number_check(0, std::numeric_limits<std::int64_t>::max()));
  auto* epochs = command->add_option("--epochs", flags->epochs, "augment, plates: epochs per training run")
                     ->type_name("N")
                     ->group(rare_group)
                     ->check(whole_number_check(1, 100000));
  auto* seeds = command->add_option("--seeds", flags->seeds, "augment: number of seeds")
                    ->type_name("N")
                    ->group(rare_group)
                    ->check(whole_number_check(1, 1000));
  auto* pretrained = command
                         ->add_option("--pretrained", flags->pretrained,
                                      "plates: initial weights, as for train; none is downloaded")
                         ->type_name("WEIGHTS")
                         ->group(rare_group);
  command
      ->add_option("--time-limit", flags->time_limit_s,
                   "Seconds per study, then the rest is left out; 0: none")
      ->type_name("S")
      ->capture_default_str()
      ->check(usage_check([](const std::string& text) {
        const auto seconds = parse_number<double>(text);
        check(seconds && *seconds >= 0 && *seconds <= 1e9, "expected seconds from 0 to 1e9, got '{}'", text);
      }));
  auto* json = add_json_flag(*command, flags->json, "Measurements as JSON, to a file or instead of tables");
  auto* html =
      command->add_option("--html", flags->html, "A report with plots, one offline file; -: to stdout")
          ->type_name("FILE");
  some.insert(some.end(), {versions, with, peers, threads, workers, epochs, seeds, pretrained});
  command->callback([flags, some, json, html, command_line, &action] {
    if (is_stdout(flags->json) && is_stdout(flags->html))
      throw CLI::ExcludesError(json->get_name() + " -", html->get_name() + " -");
    if (flags->name == "all" && !flags->cases.empty()) throw CLI::ExcludesError("--cases", "the study all");
    const std::string study = "the study " + flags->name;
    for (const CLI::Option* option : some) {
      if (option->empty() || flags->name == "all") continue;
      if (!studies().get(flags->name).reads(option->get_single_name()))
        throw CLI::ExcludesError(option->get_name(), study);
    }
    if (!flags->threads.empty() && flags->device.starts_with("cuda"))
      throw CLI::ExcludesError("--threads", "--device " + flags->device);
    // Operations for recipes run in this process and in workers, kernels in processes of their own.
    if (flags->name != "all" && studies().get(flags->name).reads("augment"))
      load_plugins(std::exchange(flags->plugins, {}));
    if (!flags->augment.empty()) as_usage("--augment", [&] { Transform::parse(flags->augment); });
    flags->cases = join_cases(flags->cases);
    for (const std::string& text : flags->cases)
      as_usage("--cases", [&] {
        const Study& chosen = studies().get(flags->name);
        check_case(flags->kernels.empty() ? chosen : without_kernel(chosen), text);
      });
    action = [flags, command_line] { return run(*flags, command_line); };
  });
}

}  // namespace tandem
