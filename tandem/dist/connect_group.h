// connect_group: the group of a process, by the way it was started.
#pragma once

#include <memory>

#include "tandem/dist/group.h"
#include "tandem/dist/launch.h"
#include "tandem/dist/transport_group.h"

namespace tandem {

// The one place that chooses between one process, local ranks (shared memory) and ranks of srun or mpirun
// (the MPI plugin). Returns when all ranks are there; takes the segment's descriptor over. Error when the
// plugin is missing or does not fit, or the ranks do not fit together; LostRank when one does not come.
std::unique_ptr<Group> connect_group(const LaunchedRank& launched, const GroupOptions& options);

}  // namespace tandem
