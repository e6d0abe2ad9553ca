// MpiPlugin: the shared library libtandem_mpi.so (mpi/mpi_transport.c), which connects the ranks that srun or
// mpirun started. It is opened only then, so that the program itself needs no MPI.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tandem/dist/launch.h"
#include "tandem/dist/transport_abi.h"

namespace tandem {

// Where the plugin is looked for: the file that TANDEM_MPI_PLUGIN names; without that variable
// libtandem_mpi.so in the library folder beside the program's, and in the build folder.
std::vector<std::filesystem::path> mpi_plugin_files(const Environment& environment);

class MpiPlugin {
 public:
  // Opens the first of `files` that exists, for good. Error that names `launched` when there is none, and
  // when it cannot be loaded or is of another version.
  MpiPlugin(const std::vector<std::filesystem::path>& files, const LaunchedRank& launched);

  // Connects the ranks; returns when all are there. Error unless MPI says the same as the launcher. To be
  // called by the thread that uses the transport.
  TandemTransport open() const;

 private:
  std::filesystem::path file_;
  LaunchedRank launched_;
  decltype(&tandem_transport_open) open_ = nullptr;
};

}  // namespace tandem
