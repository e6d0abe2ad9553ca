#include "apps/tandem/flag_table.h"

#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tandem/augment/photo_filter.h"
#include "tandem/data/dataset_registry.h"
#include "tandem/nn/model_registry.h"
#include "tandem/ops/activation.h"
#include "tandem/optim/optimizer_registry.h"
#include "tandem/optim/schedule.h"
#include "tandem/study/studies.h"
#include "tandem/train/options.h"

namespace tandem {
namespace {

FlagRow flag_row(const CLI::Option& option) {
  FlagRow row{.value = option.get_type_name(),
              .help = option.get_description(),
              .default_value = option.get_default_str(),
              .required = option.get_required(),
              .repeated = option.get_expected_max() > 1,
              .rare = option.get_group() == rare_group};
  if (option.get_positional()) {
    row.name = option.get_name(true);
    row.positional = true;
    return row;
  }
  const std::vector<std::string>& names = option.get_lnames();
  row.name = names.empty() ? "-" + option.get_snames().front() : "--" + names.front();
  for (std::size_t i = 1; i < names.size(); ++i) row.aliases.push_back("--" + names[i]);
  if (!names.empty() && !option.get_snames().empty()) row.short_name = "-" + option.get_snames().front();
  return row;
}

std::vector<std::string> with(std::vector<std::string> names, std::initializer_list<const char*> more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

}  // namespace

CommandRow command_row(const CLI::App& command) {
  CommandRow row{.name = command.get_parent() != nullptr ? command.get_name() : std::string(),
                 .summary = command.get_description(),
                 .notes = command.get_footer(),
                 .rare_notes = {},
                 .flags = {}};
  if (const std::size_t end = row.notes.find('\f'); end != std::string::npos) {
    row.rare_notes = row.notes.substr(0, end);
    row.notes.erase(0, end + 1);
  }
  for (const CLI::Option* option : command.get_options())
    if (!option->get_group().empty()) row.flags.push_back(flag_row(*option));
  // CLI11 has the help flags first.
  std::stable_partition(row.flags.begin(), row.flags.end(),
                        [](const FlagRow& flag) { return !flag.name.starts_with("--help"); });
  return row;
}

std::vector<CommandRow> command_rows(const CLI::App& app) {
  std::vector<CommandRow> rows;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_group().empty()) rows.push_back(command_row(*command));
  return rows;
}

std::string synopsis(const CommandRow& row) {
  std::string text = row.name.empty() ? "tandem COMMAND" : "tandem " + row.name;
  std::string tail;  // words of another command
  for (const FlagRow& flag : row.flags) {
    if (!flag.positional) continue;
    if (flag.value.starts_with("-- ")) {
      tail = " " + flag.value;
      continue;
    }
    const std::string name = flag.name + (flag.repeated ? "..." : "");
    text += flag.required ? " " + name : fmt::format(" [{}]", name);
  }
  return text + " [FLAGS]" + tail;
}

FlagValues flag_values(const CommandRow& command, const FlagRow& flag) {
  const std::string_view name = flag.name;
  if (name == "--model") return {models().names()};
  if (name == "--optimizer") return {optimizers().names()};
  if (name == "--schedule") return {schedules().names()};
  if (name == "--activation") return {activations().names()};
  if (name == "--filter") return {with(builtin_filters().names(), {"all"})};
  if (name == "--device") return {{"auto", "cpu", "cuda"}};
  if (name == "--precision") return {{"fp32", "tf32", "bf16"}};
  if (name == "--loss") return {{"cross-entropy", "mse"}};
  if (name == "--worker-kind") return {{"thread", "process"}};
  if (name == "--augment-on") return {{"auto", "cpu", "gpu"}};
  if (name == "--on-bad-image") return {{"skip", "fail"}};
  if (name == "--augment") return {{"none", "digits", "photo"}};
  if (name == "--preset") return {presets().names()};
  if (name == "--pretrained") return {{"auto", "imagenet", "scenes", "none"}, true};
  if (name == "NAME" && command.name == "study") return {with(studies().names(), {"all"})};
  if (name == "DATA" && command.name == "fetch") return {fetchable()};
  if (name == "DATA" || name == "--data") return {datasets().names(), true};
  const std::string_view value = flag.positional ? name : std::string_view(flag.value);
  constexpr std::string_view files[] = {"FILE",  "[FILE]", "PATH",  "DIR", "RUNDIR", "[RUNDIR]",
                                        "MODEL", "PHOTO",  "IMAGE", "SRC", "DST"};
  return {{}, std::ranges::find(files, value) != std::end(files)};
}

}  // namespace tandem
