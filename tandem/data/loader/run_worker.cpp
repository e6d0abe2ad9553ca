#include "tandem/data/loader/run_worker.h"

#include <cstdlib>
#include <string_view>

#include "tandem/data/loader/worker.h"

namespace tandem {

// The marker in the environment tells a worker from a program that has a command of the same name.
std::optional<int> run_worker_if_asked(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "worker" || !std::getenv(worker_marker)) return {};
  return run_worker({argv + 1, argv + argc});
}

}  // namespace tandem
