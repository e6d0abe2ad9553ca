// The commands of the program. Each adds its flags to the parser and sets the action to run.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <string>

#include "tandem/core/check.h"
#include "tandem/device/device.h"
#include "tandem/text/parse_number.h"

namespace tandem {

// Set by the selected command; runs it and returns the exit status.
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
// `command_line` is what the user typed; it is stored with the run and in reports.
void add_study_command(CLI::App& app, Action& action, const std::string& command_line);
void add_train_command(CLI::App& app, Action& action, const std::string& command_line);
void add_verify_determinism_command(CLI::App& app, Action& action);

// The text of an Error without its "[op] " prefix, because the flag name is put in front.
inline std::string usage_text(const Error& error) {
  const std::string text = error.what();
  const std::size_t end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

// Turns an Error thrown while a flag is parsed into a usage error (exit status 2).
template <class F>
void as_usage(const std::string& flag, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    throw CLI::ValidationError(flag, usage_text(error));
  }
}

// The same as a validator, for a flag that can be checked on its own.
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

// CLI11's own range check accepts -1 as a large number and shows its bounds as doubles.
inline CLI::Validator whole_number_check(std::int64_t min, std::int64_t max) {
  return usage_check([min, max](const std::string& text) {
    const auto value = parse_number<std::int64_t>(text);
    check(value && *value >= min && *value <= max, "expected a whole number from {} to {}, got '{}'", min,
          max, text);
  });
}

// Text that is not a device name is a usage error; a GPU that is not present is reported later, as a failure.
inline CLI::Validator device_check() {
  return usage_check([](const std::string& name) {
    if (name != "auto") parse_device_name(name);
  });
}

}  // namespace tandem
