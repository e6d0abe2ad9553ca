#include "tandem/study/plugin/python.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tandem/core/check.h"
#include "tandem/process/run_program.h"
#include "tandem/study/plugin/embedded.h"

namespace tandem {
namespace {

bool has_numpy(const std::string& python) {
  return run_program({python, "-c", "import numpy"}, {.folder = {}, .timeout_s = 60}).empty();
}

std::string find_python() {
  if (const char* chosen = std::getenv("TANDEM_PYTHON")) {
    check(has_numpy(chosen), "[plugin] expected a Python with NumPy in TANDEM_PYTHON, got {}", chosen);
    return chosen;
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/bin:/bin");
  std::string found;
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string python = (std::filesystem::path(folder) / "python3").string();
    if (folder.empty() || ::access(python.c_str(), X_OK) != 0) continue;
    if (has_numpy(python)) return python;
    if (found.empty()) found = python;
  }
  check(!found.empty(), "[plugin] Python is not installed: install python3 and python3-numpy");
  fail("[plugin] {} has no NumPy: install python3-numpy, or set TANDEM_PYTHON to a Python that has it",
       found);
}

}  // namespace

const std::vector<std::string>& python_host_command() {
  static const std::vector<std::string> command{find_python(), "-c", std::string(embedded_plugin_host)};
  return command;
}

}  // namespace tandem
