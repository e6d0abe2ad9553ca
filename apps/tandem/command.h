// The commands of the program. Each adds its flags to the parser and leaves behind what to run; flags in, one
// call, text out.
#pragma once

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdint>
#include <functional>
#include <string>

#include "tandem/core/check.h"
#include "tandem/device/device.h"

namespace tandem {

// Set by the command that was chosen: does its job and returns the exit status.
using Action = std::function<int()>;

void add_augment_command(CLI::App& app, Action& action);
void add_devices_command(CLI::App& app, Action& action);
void add_eval_command(CLI::App& app, Action& action);
void add_fetch_command(CLI::App& app, Action& action);
void add_filter_command(CLI::App& app, Action& action);
void add_inspect_command(CLI::App& app, Action& action);
void add_plates_command(CLI::App& app, Action& action);
void add_predict_command(CLI::App& app, Action& action);
void add_split_command(CLI::App& app, Action& action);
void add_study_command(CLI::App& app, Action& action);
// `command_line` is what the user typed, kept with what it made.
void add_train_command(CLI::App& app, Action& action, const std::string& command_line);
void add_verify_determinism_command(CLI::App& app, Action& action);

// The sentence of an Error without its "[op] ": the flag's name stands before it.
inline std::string usage_text(const Error& error) {
  const std::string text = error.what();
  const std::size_t end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

// An Error of ours, thrown while a flag is read, is wrong usage (status 2).
template <class F>
void as_usage(const std::string& flag, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    throw CLI::ValidationError(flag, usage_text(error));
  }
}

// The same for a flag that can be judged by itself.
template <class F>
CLI::Validator usage_check(F&& f) {
  return CLI::Validator(
      [f](const std::string& text) {
        try {
          f(text);
          return std::string();
        } catch (const Error& error) {
          return usage_text(error);
        }
      },
      "");
}

// CLI11's own check takes -1 for a large number and shows its bounds as doubles.
inline CLI::Validator whole_number_check(std::int64_t least, std::int64_t most) {
  return usage_check([least, most](const std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    check(error == std::errc{} && end == text.data() + text.size() && value >= least && value <= most,
          "expected a whole number from {} to {}, got '{}'", least, most, text);
  });
}

// Text that names no device is wrong usage; a GPU that is not there is not.
inline CLI::Validator device_check() {
  return usage_check([](const std::string& name) {
    if (name != "auto") device_named(name);
  });
}

}  // namespace tandem
