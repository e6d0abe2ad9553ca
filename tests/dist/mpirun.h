// mpirun for tests.
#pragma once

#include <filesystem>
#include <string>

#include "tandem/dist/launch.h"
#include "tandem/process/run_program.h"

namespace tandem {

// Open MPI on one machine, as any user, with more ranks than CPUs; no network but loopback is needed. The
// sanitizers do not know what MPI does.
inline const Environment mpirun_settings{{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                         {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                         {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                         {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                         {"OMPI_MCA_mpi_yield_when_idle", "1"},
                                         {"OMPI_MCA_btl_tcp_if_include", "lo"},
                                         {"OMPI_MCA_oob_tcp_if_include", "lo"},
                                         {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
                                         {"PRTE_ALLOW_RUN_AS_ROOT", "1"},
                                         {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                         {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},
                                         {"PRTE_MCA_hwloc_default_binding_policy", "none"},
                                         {"ASAN_OPTIONS", "detect_leaks=0"},
                                         {"TSAN_OPTIONS", "ignore_noninstrumented_modules=1"}};

// Why ranks of mpirun cannot be tested here; "" if they can.
inline std::string missing_mpirun() {
  if (!std::filesystem::exists(TANDEM_MPI_PLUGIN_FILE)) return "built without MPI";
  return run_program({"mpirun", "--version"}, RunProgramOptions{});
}

}  // namespace tandem
