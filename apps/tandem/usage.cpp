#include "apps/tandem/usage.h"

#include <CLI/CLI.hpp>

#include <fmt/ranges.h>

#include <algorithm>

#include "apps/tandem/advice.h"
#include "tandem/core/did_you_mean.h"

namespace tandem {
namespace {

// "tandem study --help" if that command was selected, else "tandem --help".
std::string help_command(const CLI::App& app) {
  std::string command = app.get_name();
  for (const CLI::App* chosen : app.get_subcommands()) command += " " + chosen->get_name();
  return command + " --help";
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_group().empty()) names.push_back(command->get_name());
  return names;
}

bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-';
}

// The long names of a command's flags, without dashes.
std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  return names;
}

std::string unknown_flag(const CLI::App& command, const std::string& word) {
  const std::string flag = word.substr(0, word.find('='));
  const std::size_t dashes = std::min(flag.find_first_not_of('-'), flag.size());
  const std::string meant = closest_name(flag.substr(dashes), flag_names(command));
  return fmt::format("unknown flag {}{}", flag,
                     meant.empty() ? std::string() : fmt::format("; did you mean --{}?", meant));
}

// For an unknown command CLI11 only reports that one is required.
std::string unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  if (!words.empty() && is_flag(words[0])) return unknown_flag(app, words[0]);
  const std::vector<std::string> names = command_names(app);
  if (words.empty()) return fmt::format("expected one of the commands {}, got none", fmt::join(names, ", "));
  const std::string meant = did_you_mean(words[0], names);
  return meant.empty()
             ? fmt::format("expected one of the commands {}, got '{}'", fmt::join(names, ", "), words[0])
             : fmt::format("unknown command '{}'{}", words[0], meant);
}

std::string problem(const CLI::App& app, const CLI::ParseError& error,
                    const std::vector<std::string>& words) {
  if (app.get_subcommands().empty()) return unknown_command(app, words);
  const CLI::App& command = *app.get_subcommands().front();
  // A misspelled flag is the likely reason of whatever else is missing.
  const std::vector<std::string> rest = command.remaining();
  for (const std::string& word : rest)
    if (is_flag(word)) return unknown_flag(command, word);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !rest.empty())
    return fmt::format("unexpected argument '{}'", rest.front());
  return error.what();
}

}  // namespace

std::string usage_error(const CLI::App& app, const CLI::ParseError& error,
                        const std::vector<std::string>& words) {
  return fmt::format("{} (see {})", with_advice(problem(app, error, words)), help_command(app));
}

}  // namespace tandem
