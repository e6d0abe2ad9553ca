#include "tandem/dist/mpi_plugin.h"

#include <dlfcn.h>

#include <algorithm>

#include "tandem/core/check.h"
#include "tandem/core/program_prefix.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "libtandem_mpi.so";

bool is_there(const fs::path& file) {
  std::error_code error;
  return fs::exists(file, error);
}

// How to get a plugin that fits.
std::string build_command() {
  fs::path source = program_prefix() / "share/tandem/mpi/mpi_transport.c";
  std::string include;
  if (!is_there(source)) {
    const fs::path folder = TANDEM_SOURCE_FOLDER;
    source = folder / "tandem/dist/mpi/mpi_transport.c";
    include = " -I" + folder.string();
  }
  return fmt::format("mpicc -shared -fPIC -O2{} -o {} {}", include, file_name, source.string());
}

std::string started_by(const LaunchedRank& launched) {
  return fmt::format("{} started {} ranks", name_of(launched.launcher), launched.place.size);
}

}  // namespace

std::vector<fs::path> mpi_plugin_files(const Environment& environment) {
  if (const auto named = environment.find("TANDEM_MPI_PLUGIN");
      named != environment.end() && !named->second.empty())
    return {named->second};
  const fs::path prefix = program_prefix();
  return {prefix / TANDEM_LIBRARY_FOLDER / "tandem" / file_name, prefix / "lib/tandem" / file_name,
          fs::path(TANDEM_BUILD_FOLDER) / file_name};
}

MpiPlugin::MpiPlugin(const std::vector<fs::path>& files, const LaunchedRank& launched) : launched_(launched) {
  const auto found = std::ranges::find_if(files, is_there);
  if (found == files.end()) {
    if (files.size() == 1)
      fail("[group] {}, but there is no MPI plugin {}, which TANDEM_MPI_PLUGIN names", started_by(launched),
           files.front().string());
    fail(
        "[group] {}, but the MPI plugin {} was not found; build it with \"{}\" and set TANDEM_MPI_PLUGIN to "
        "its path",
        started_by(launched), file_name, build_command());
  }
  file_ = fs::absolute(*found);
  void* const library = ::dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr)
    fail("[group] the MPI plugin {} cannot be loaded: {}; build one that fits with \"{}\"", file_.string(),
         ::dlerror(), build_command());
  const auto version =
      reinterpret_cast<decltype(&tandem_transport_version)>(::dlsym(library, "tandem_transport_version"));
  open_ = reinterpret_cast<decltype(&tandem_transport_open)>(::dlsym(library, "tandem_transport_open"));
  check(version != nullptr && open_ != nullptr, "[group] {} is not an MPI plugin of Tandem", file_.string());
  const int number = version();
  check(number == TANDEM_TRANSPORT_VERSION,
        "[group] the MPI plugin {} has version {} of the interface, this program needs {}; build it with "
        "\"{}\"",
        file_.string(), number, static_cast<int>(TANDEM_TRANSPORT_VERSION), build_command());
}

TandemTransport MpiPlugin::open() const {
  TandemTransport table{};
  if (open_(&table) != 0) fail("[group] MPI cannot connect the ranks: {}", table.error(table.state));
  const Place& place = launched_.place;
  const int rank = table.rank, size = table.size;
  if (rank == place.rank && size == place.size) return table;
  table.close(table.state, size > 1 ? 1 : 0);
  if (size != place.size)
    fail(
        "[group] {}, but MPI says {}: they were started by another MPI than that of the plugin {}{}; build "
        "one "
        "that fits with \"{}\"",
        started_by(launched_), size, file_.string(),
        launched_.launcher == Launcher::slurm ? ", or srun without --mpi=pmix" : "", build_command());
  fail("[group] expected rank {} from MPI as {} says, got {}", place.rank, name_of(launched_.launcher), rank);
}

}  // namespace tandem
