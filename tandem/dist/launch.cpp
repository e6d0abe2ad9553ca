#include "tandem/dist/launch.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <optional>

#include "tandem/core/check.h"

namespace tandem {
namespace {

constexpr std::string_view rank_name = "TANDEM_RANK", ranks_name = "TANDEM_RANKS", fd_name = "TANDEM_RANK_FD";
constexpr std::string_view shared_gpu_name = "TANDEM_TEST_SHARED_GPU";  // for tests: several ranks on one GPU

// The variables in which a launcher tells a process its place. Empty: it does not.
struct LauncherVariables {
  Launcher launcher;
  std::string_view rank, size, local_rank, local_size, node;
};
constexpr std::array launchers{
    LauncherVariables{Launcher::local, rank_name, ranks_name, rank_name, ranks_name, ""},
    LauncherVariables{Launcher::open_mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                      "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", ""},
    LauncherVariables{Launcher::mpich, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ""},
    LauncherVariables{Launcher::slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "",
                      "SLURM_NODEID"},
};

const std::string* find(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? nullptr : &found->second;
}

int parse(std::string_view name, std::string_view text, int min) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error == std::errc() && end == text.data() + text.size() && value >= min,
        "[launch] expected a number of at least {} in {}, got \"{}\"", min, name, text);
  return value;
}

std::optional<int> number(const Environment& environment, std::string_view name, int min) {
  const std::string* text = find(environment, name);
  if (!text) return std::nullopt;
  return parse(name, *text, min);
}

// The tasks of one node in SLURM's list of all nodes: "2(x3),1" is 2, 2, 2, 1. None when the list is shorter.
std::optional<int> tasks_of_node(std::string_view list, int node) {
  constexpr std::string_view name = "SLURM_STEP_TASKS_PER_NODE";
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    const auto open = item.find("(x");
    const int tasks = parse(name, item.substr(0, open), 1);
    int nodes = 1;
    if (open != std::string_view::npos) {
      check(item.ends_with(')'), "[launch] expected a list like \"2(x3),1\" in {}, got \"{}\"", name, item);
      nodes = parse(name, item.substr(open + 2, item.size() - open - 3), 1);
    }
    if (node < nodes) return tasks;
    node -= nodes;
  }
  return std::nullopt;
}

std::string host_name(const Environment& environment, Launcher launcher) {
  // Several nodes of a simulated cluster are one host.
  const std::string* node = launcher == Launcher::slurm ? find(environment, "SLURMD_NODENAME") : nullptr;
  if (node && !node->empty()) return *node;
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 && name[0] ? name : "localhost";
}

}  // namespace

Environment process_environment() {
  Environment all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    if (const auto equals = text.find('='); equals != std::string_view::npos)
      all.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return all;
}

std::string_view name_of(Launcher launcher) {
  switch (launcher) {
    case Launcher::local:
      return "local ranks";
    case Launcher::slurm:
      return "srun";
    case Launcher::open_mpi:
      return "mpirun (Open MPI)";
    case Launcher::mpich:
      return "mpiexec (MPICH)";
    case Launcher::none:
      break;
  }
  return "one process";
}

LaunchedRank detect_launch(const Environment& environment) {
  LaunchedRank found;
  for (const LauncherVariables& names : launchers) {
    const auto size = number(environment, names.size, 1);
    if (!size) continue;
    const auto rank = number(environment, names.rank, 0);
    check(rank && *rank < *size, "[launch] expected a rank below {} in {}, got {}", *size, names.rank,
          rank ? std::to_string(*rank) : "none");
    Place& place = found.place;
    found.launcher = names.launcher;
    place.rank = *rank;
    place.size = *size;
    place.local_rank = number(environment, names.local_rank, 0).value_or(0);
    place.local_size = number(environment, names.local_size, 1).value_or(1);
    place.node = number(environment, names.node, 0).value_or(0);
    if (names.launcher == Launcher::slurm)
      if (const std::string* list = find(environment, "SLURM_STEP_TASKS_PER_NODE"))
        place.local_size = tasks_of_node(*list, place.node).value_or(1);
    place.local_size = std::max(place.local_size, place.local_rank + 1);
    if (names.launcher == Launcher::local) {
      const auto fd = number(environment, fd_name, 0);
      check(fd.has_value(), "[launch] expected the descriptor of the ranks' shared memory in {}, got none",
            fd_name);
      found.segment_fd = *fd;
    }
    break;
  }
  found.place.host = host_name(environment, found.launcher);
  found.place.pid = ::getpid();
  return found;
}

std::vector<std::string> local_rank_environment(const Environment& environment, int rank, int ranks,
                                                int segment_fd) {
  Environment all = environment;
  all.insert_or_assign(std::string(rank_name), std::to_string(rank));
  all.insert_or_assign(std::string(ranks_name), std::to_string(ranks));
  all.insert_or_assign(std::string(fd_name), std::to_string(segment_fd));
  if (all.contains(shared_gpu_name)) {  // NCCL takes the ranks for several nodes, connected by loopback
    all.insert_or_assign("NCCL_HOSTID", std::to_string(rank));
    all.emplace("NCCL_SOCKET_IFNAME", "lo");
  }
  std::vector<std::string> entries;
  entries.reserve(all.size());
  for (const auto& [name, value] : all) entries.push_back(name + "=" + value);
  return entries;
}

}  // namespace tandem
