// The commands of the program. Each adds its flags to the parser and leaves behind what to run; flags in, one
// call, text out.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace tandem {

// Set by the command that was chosen: does its job and returns the exit status.
using Action = std::function<int()>;

void add_devices_command(CLI::App& app, Action& action);
void add_filter_command(CLI::App& app, Action& action);
void add_study_command(CLI::App& app, Action& action);

// Makes an Error of ours, thrown while a flag is read, wrong usage (status 2).
template <class F>
CLI::Validator usage_check(F&& f) {
  return CLI::Validator(
      [f](const std::string& text) {
        try {
          f(text);
          return std::string();
        } catch (const std::exception& error) {
          return std::string(error.what());
        }
      },
      "");
}

}  // namespace tandem
