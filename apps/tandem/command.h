// The commands of the program. Each adds its flags to the parser and sets the action to run.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tandem/core/check.h"
#include "tandem/device/device.h"
#include "tandem/text/parse_number.h"

namespace tandem {

// Set by the selected command; runs it and returns the exit status.
using Action = std::function<int()>;

void add_augment_command(CLI::App& app, Action& action);
// `command_line` is what the user typed; reports show it.
void add_check_command(CLI::App& app, Action& action, const std::string& command_line);
void add_compare_command(CLI::App& app, Action& action, const std::string& command_line);
void add_convert_command(CLI::App& app, Action& action);
void add_devices_command(CLI::App& app, Action& action);
void add_eval_command(CLI::App& app, Action& action);
void add_explain_command(CLI::App& app, Action& action, const std::string& command_line);
void add_export_command(CLI::App& app, Action& action);
void add_fetch_command(CLI::App& app, Action& action);
void add_filter_command(CLI::App& app, Action& action);
// Hidden: prints the man page, shell completion and reference pages, made from the flags of `app`.
void add_generate_command(CLI::App& app, Action& action);
// `command_line` is what the user typed; reports show it.
void add_grade_command(CLI::App& app, Action& action, const std::string& command_line);
void add_inspect_command(CLI::App& app, Action& action);
void add_new_command(CLI::App& app, Action& action);
void add_pack_command(CLI::App& app, Action& action);
void add_plates_command(CLI::App& app, Action& action);
void add_predict_command(CLI::App& app, Action& action);
// `command_line` is what the user typed; it is stored with the run and in its weights.
void add_pretrain_command(CLI::App& app, Action& action, const std::string& command_line);
void add_probe_command(CLI::App& app, Action& action);
// `command_line` is what the user typed; it is stored in the file.
void add_quantize_command(CLI::App& app, Action& action, const std::string& command_line);
void add_serve_command(CLI::App& app, Action& action);
void add_split_command(CLI::App& app, Action& action);
// `command_line` is what the user typed; it is stored with the run and in reports.
void add_study_command(CLI::App& app, Action& action, const std::string& command_line);
// `training` are the words that cut_training() has taken from the command line.
void add_submit_command(CLI::App& app, Action& action, const std::vector<std::string>& training);
// Of `tandem submit`: takes the words of the training out of the command line, which has other flags of the
// same names. They begin with "train", after "--" if there is one.
std::vector<std::string> cut_training(std::vector<std::string>& words);
// Gives every --freeze its value: the number after it, or true. A word that is no number is not taken.
std::vector<std::string> with_freeze_values(std::vector<std::string> words);
void add_train_command(CLI::App& app, Action& action, const std::string& command_line);
void add_verify_determinism_command(CLI::App& app, Action& action);
void add_watch_command(CLI::App& app, Action& action);

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

// The text of the Error that f() throws, or nothing.
template <class F>
std::string usage_problem(F&& f) {
  try {
    f();
    return {};
  } catch (const Error& error) {
    return usage_text(error);
  }
}

// The same as a validator, for a flag that can be checked on its own.
template <class F>
CLI::Validator usage_check(F&& f) {
  return CLI::Validator([f](const std::string& text) { return usage_problem([&] { f(text); }); }, "");
}

// CLI11's own range check accepts -1 as a large number and shows its bounds as doubles.
inline CLI::Validator whole_number_check(std::int64_t min, std::int64_t max) {
  return usage_check([min, max](const std::string& text) {
    const auto value = parse_number<std::int64_t>(text);
    check(value && *value >= min && *value <= max, "expected a whole number from {} to {}, got '{}'", min,
          max, text);
  });
}

// The name of a device for the words people use: "gpu" is cuda, and a number is a GPU's.
inline std::string device_name(const std::string& word) {
  if (word == "gpu") return "cuda";
  return parse_number<unsigned>(word) ? "cuda:" + word : word;
}

// Text that is not a device name is a usage error; a GPU that is not present is reported later, as a failure.
// The flag's value becomes the device's name.
inline CLI::Validator device_check() {
  return CLI::Validator(
      [](std::string& word) {
        word = device_name(word);
        return usage_problem([&] {
          if (word != "auto") parse_device_name(word);
        });
      },
      "");
}

// Adds --device; `automatic` says what auto means for the command: "the CPU".
inline CLI::Option* add_device_flag(CLI::App& command, std::string& device, const std::string& automatic) {
  return command.add_option("--device", device, "auto (" + automatic + "), cpu, cuda or cuda:N")
      ->type_name("DEVICE")
      ->capture_default_str()
      ->transform(device_check());
}

}  // namespace tandem
