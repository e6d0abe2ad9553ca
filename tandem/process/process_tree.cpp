#include "tandem/process/process_tree.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Of one process: the fields utime, stime, cutime and cstime of its stat file, in seconds.
std::optional<double> cpu_seconds(const fs::path& folder) {
  std::ifstream file(folder / "stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = text.rfind(')');  // the name may have spaces and parentheses
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double ticks = 0;
  for (int i = 0; i < 4; ++i) {
    double value = 0;
    if (!(fields >> value)) return std::nullopt;
    ticks += value;
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void add_children(const fs::path& folder, std::vector<pid_t>& to) {
  std::error_code error;
  for (fs::directory_iterator thread(folder / "task", error), end; !error && thread != end;
       thread.increment(error)) {
    std::ifstream file(thread->path() / "children");
    for (pid_t child = 0; file >> child;) to.push_back(child);
  }
}

}  // namespace

std::optional<double> tree_cpu_seconds(pid_t process, const fs::path& proc) {
  constexpr std::size_t max_processes = 10'000;
  std::vector<pid_t> open{process};
  std::set<pid_t> seen;  // numbers may be reused while they are read
  double seconds = 0;
  while (!open.empty() && seen.size() < max_processes) {
    const pid_t one = open.back();
    open.pop_back();
    if (!seen.insert(one).second) continue;
    const fs::path folder = proc / std::to_string(one);
    const std::optional<double> own = cpu_seconds(folder);
    if (!own && one == process) return std::nullopt;
    seconds += own.value_or(0);
    add_children(folder, open);
  }
  return seconds;
}

}  // namespace tandem
