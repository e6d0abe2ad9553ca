// Runs another program until it exits: no shell, no input, its output discarded, errors as well unless asked
// for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem {

struct RunProgramOptions {
  std::filesystem::path folder;   // working directory of the program
  int timeout_s = 120;            // then it is killed
  bool own_group = false;         // what it has started is killed with it; Ctrl-C does not reach it
  std::string* errors = nullptr;  // receives the beginning of what it writes to standard error
};

// `words` are the program, looked up in PATH, and its arguments. Returns an empty text on success, else the
// reason: "npm is not installed", "npm ended with status 1".
std::string run_program(const std::vector<std::string>& words, const RunProgramOptions& options);

}  // namespace tandem
