// Runs another program to its end: no shell, no input, its output thrown away.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem {

struct SpawnOptions {
  std::filesystem::path folder;  // where the program works
  int limit_s = 120;             // then it is killed
};

// Nothing on success, else the reason: "npm is not installed", "npm ended with status 1".
std::string spawn(const std::vector<std::string>& words, const SpawnOptions& options);

}  // namespace tandem
