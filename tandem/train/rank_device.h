// The devices of the ranks of a run.
#pragma once

#include <functional>

#include "tandem/dist/group.h"
#include "tandem/train/device_choice.h"
#include "tandem/train/fit_options.h"

namespace tandem {

// The GPU of this rank: the ranks of a node take its GPUs in turn, from `first` on. The CPU for the CPU.
Device device_of_rank(const Place& place, Device first);

struct RankDevice {
  DeviceChoice choice;  // the device is that of this rank; the reason is known to rank 0 only
  Device first;         // of rank 0, as the configuration of the run has it
};

// Rank 0 calls `choose` for all; each rank has a device of that kind. All ranks call this function together.
// Error unless their devices can work together: of the same kind, with the same libraries, and with NCCL no
// GPU of two ranks.
RankDevice choose_rank_device(Group& group, const FitOptions& options,
                              const std::function<DeviceChoice()>& choose);

}  // namespace tandem
